import type { Mutant } from './mutants.ts'

/** Faults in what leaves the database. */
export const OUTBOX_MUTANTS: readonly Mutant[] = [
  {
    name: 'take the letters of a type for the types of a destination',
    file: 'src/outbox/options.ts',
    edits: [{ from: `if (types !== undefined) requireList(`, to: `if (types === null) requireList(` }],
    tests: ['test/contract/list-options.test.ts'],
  },
  {
    name: 'post an event without the signature that is not there yet',
    file: 'src/outbox/http-publisher.ts',
    edits: [{ from: `const signed = await options`, to: `const signed: object | undefined = options` }],
    tests: ['test/outbox/http.test.ts'],
  },
  {
    name: 'outbox: mark events as delivered before they are published',
    file: 'src/outbox/courier.ts',
    edits: [
      {
        from: `    const round = await deliver(taken, {`,
        to: `    const lanes = new Map(taken.events.map(({ at }) => [at.lane, at]))
    const { claimId } = taken
    const nothing = { hold: [], again: [], released: [] }
    await this.#store.done({ destination: this.name, claimId, lanes: [...lanes.values()], ...nothing })
    const round = await deliver(taken, {`,
      },
    ],
    tests: ['test/outbox/relay.test.ts', 'test/crash/relay.test.ts'],
  },
  {
    name: 'outbox: publish what is not committed',
    file: 'src/store/postgres/outbox.ts',
    edits: [
      {
        from: `    const [first] = events
    if (first === undefined) return
`,
        to: `    const [first] = events
    if (first === undefined) return
    tx = { query: (text, values) => this.#connections.use((client) => client.query(text, values)) }
`,
      },
    ],
    tests: ['test/outbox/emit.test.ts'],
  },
  {
    name: 'outbox: ignore the order of events within a batch',
    file: 'src/store/postgres/sql/relay.ts',
    edits: [{ from: `array_agg(id ORDER BY position)`, to: `array_agg(id ORDER BY id)` }],
    tests: ['test/outbox/emit.test.ts'],
  },
  {
    name: 'outbox: let later events overtake one that is held',
    file: 'src/outbox/round.ts',
    edits: [{ from: `(one.from === 'lane' && one.blocked) || `, to: `` }],
    tests: ['test/outbox/poison.test.ts'],
  },
  {
    name: 'outbox: take lanes that another relay has',
    file: 'src/store/postgres/sql/relay.ts',
    edits: [
      {
        from: `WHERE c.destination = $1 AND (c.lease_until IS NULL OR c.lease_until <= clock_timestamp()) AND (`,
        to: `WHERE c.destination = $1 AND (`,
      },
      {
        from: `  AND (c.lease_until IS NULL OR c.lease_until <= clock_timestamp())
RETURNING c.lane, c.batch, c.place`,
        to: `RETURNING c.lane, c.batch, c.place`,
      },
    ],
    tests: ['test/outbox/relay.test.ts'],
  },
  {
    name: 'outbox: let a relay that lost its lanes move their cursors',
    file: 'src/store/postgres/sql/relay.ts',
    edits: [
      {
        from: `WHERE c.destination = $1 AND c.claim_id = $2::uuid AND c.lane = k.lane
RETURNING c.lane`,
        to: `WHERE c.destination = $1 AND $2::uuid IS NOT NULL AND c.lane = k.lane
RETURNING c.lane`,
      },
    ],
    tests: ['test/outbox/relay.test.ts'],
  },
  {
    name: 'outbox: park events of a destination that is away',
    file: 'src/outbox/courier.ts',
    edits: [
      { from: `(refused || (alone && alive) ? 1 : 0)`, to: `(refused || alone || alive ? 1 : 0)` },
      { from: `const stepsAside = round.alive ||`, to: `const stepsAside = true ||` },
    ],
    tests: ['test/outbox/relay.test.ts'],
  },
  {
    name: 'outbox: do the effect of a message before it is noted, and note it whatever comes of it',
    file: 'src/store/postgres/outbox.ts',
    edits: [
      {
        from: `      const { rows } = await tx.query(this.#statements.insertMessage.text, values)
`,
        to: `      const value = await work()
      work = async () => value
      const { rows } = await tx.query(this.#statements.insertMessage.text, values)
`,
      },
    ],
    tests: ['test/outbox/inbox.test.ts'],
  },
  {
    name: 'outbox: keep the note of a message whose effect failed',
    file: 'src/store/postgres/savepoint.ts',
    edits: [{ from: `    if (!over && transaction.leftOpen === null) await undo(tx)\n`, to: `` }],
    tests: ['test/outbox/inbox.test.ts'],
  },
  {
    name: 'outbox: let a job that lost its lease say how it ended',
    file: 'src/store/postgres/sql/jobs.ts',
    edits: [
      {
        from: `WHERE j.account = k.account AND j.id = k.id AND j.claim_id = $1::uuid\``,
        to: `WHERE j.account = k.account AND j.id = k.id AND $1::uuid IS NOT NULL\``,
      },
    ],
    tests: ['test/outbox/jobs.test.ts'],
  },
  {
    name: 'outbox: write events where no transaction is open',
    file: 'src/store/postgres/open-transaction.ts',
    edits: [{ from: 'if (tx instanceof Tx) return', to: 'if (tx instanceof Tx || tx) return' }],
    tests: ['test/outbox/open-transaction.test.ts'],
  },
  {
    name: 'outbox: let the savepoints of two messages undo each other',
    file: 'src/store/postgres/busy.ts',
    edits: [{ from: 'return inside.getStore() === this && (', to: 'return (' }],
    tests: ['test/outbox/open-transaction.test.ts'],
  },
  {
    name: 'outbox: read the ids of jobs in the way of the caller',
    file: 'src/store/postgres/sql/outbox.ts',
    edits: [{ from: 'SELECT id::text AS id FROM staged', to: 'SELECT id FROM staged' }],
    tests: ['test/outbox/open-transaction.test.ts'],
  },
]
