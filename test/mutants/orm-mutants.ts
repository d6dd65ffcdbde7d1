import type { Mutant } from './mutants.ts'

const POOL = ['test/orm/pool.test.ts']
const NESTED = ['test/orm/nested.test.ts']
const SEAT = ['src/orm/seat.test.ts']
const CURRENT = ['test/orm/current-tx.test.ts']
const STATEMENTS = ['src/orm/statements.test.ts']

/** Faults in the transaction as ORMs see it. */
export const ORM_MUTANTS: readonly Mutant[] = [
  {
    name: 'orm: let two nested transactions run at once',
    file: 'src/orm/seat.ts',
    edits: [{ from: 'if (this.#holder !== null) return this.#wait(client, true, send)', to: '' }],
    tests: NESTED,
    only: 'one after the other',
  },
  {
    name: 'orm: send a statement of another client inside a nested transaction',
    file: 'src/orm/seat.ts',
    edits: [
      {
        from: 'return this.#holder === null ? send() : this.#wait(client, false, send)',
        to: 'return send()',
      },
    ],
    tests: NESTED,
    only: 'begun meanwhile',
  },
  {
    name: 'orm: refuse a statement although the nested transaction is at work',
    file: 'src/orm/seat.ts',
    edits: [
      {
        from: 'this.#busy > 0 ? LIMITS.nestedSilenceMaxMs : this.#silence.leftMs',
        to: 'this.#silence.leftMs',
      },
    ],
    tests: SEAT,
  },
  {
    name: 'orm: take a failed nested transaction for committed',
    file: 'src/orm/client.ts',
    edits: [
      {
        from: "throw new OnlyonceError('nested_transaction_failed', { cause: error })",
        to: "return await this.#rollBack().then((answer) => named(answer, 'ROLLBACK'))",
      },
    ],
    tests: NESTED,
    only: 'in silence',
  },
  {
    name: 'orm: keep a nested transaction open when its client is given back',
    file: 'src/orm/client.ts',
    edits: [{ from: 'void this.#abandon()\n', to: '' }],
    tests: NESTED,
    only: 'given back',
  },
  {
    name: 'orm: commit the request while a nested transaction is open',
    file: 'src/orm/client.ts',
    edits: [{ from: ';(tx as Partial<KeepsOpen>)[KEEP_OPEN]?.(call)', to: '' }],
    tests: NESTED,
    only: 'as a whole',
  },
  {
    name: 'orm: take any isolation level for the one that is open',
    file: 'src/orm/client.ts',
    edits: [{ from: 'if (actual === isolation) return', to: 'if (actual !== undefined) return' }],
    tests: NESTED,
    only: 'ISOLATION',
  },
  {
    name: 'orm: use the names that ORMs give to prepared statements',
    file: 'src/orm/question.ts',
    edits: [{ from: 'read.name = nameOf(read.text)', to: 'nameOf(read.text)' }],
    tests: NESTED,
    only: 'one name for two texts',
  },
  {
    name: 'orm: forget the parsers that an ORM gives to its client',
    file: 'src/orm/client.ts',
    edits: [{ from: 'question.config.types ??= this.#types()', to: 'this.#types()' }],
    tests: POOL,
    only: 'parser',
  },
  {
    name: 'orm: connect to another database where an ORM copies the pool',
    file: 'src/orm/pool.ts',
    edits: [
      { from: 'readonly Client = TxClient\n', to: '\n' },
      {
        from: 'this[TX] = tx',
        to: "Object.defineProperty(this, TX, { value: tx }); Reflect.deleteProperty(this, 'Client')",
      },
    ],
    tests: POOL,
    only: 'pool of its own',
  },
  {
    name: 'orm: read a statement in what is quoted',
    file: 'src/orm/statements.ts',
    edits: [{ from: "(/^(?:--|\\/\\*)/.test(quoted) ? ' ' : \"''\")", to: 'quoted' }],
    tests: STATEMENTS,
  },
  {
    name: 'orm: find a transaction that is over',
    file: 'src/orm/current-tx.ts',
    edits: [{ from: "if (tx.over) throw new OnlyonceError('transaction_over')", to: '' }],
    tests: CURRENT,
    only: 'after the end',
  },
  {
    name: 'orm: find the transaction of a process that did not ask for it',
    file: 'src/store/postgres/work-transaction.ts',
    edits: [{ from: 'this.connections.settings.currentTx ?', to: 'true ?' }],
    tests: CURRENT,
    only: 'not asked for',
  },
]
