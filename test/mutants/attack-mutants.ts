import type { Mutant } from './mutants.ts'

const DRIVER = 'test/truth/driver-errors.test.ts'

/** Defects that somebody who means harm, or a deploy at a bad moment, has found. */
export const ATTACK_MUTANTS: readonly Mutant[] = [
  {
    name: 'take a record over whose seal is broken, and leave it to its lease',
    file: 'src/store/sealed-operations.ts',
    edits: [
      {
        from: `    } catch {\n      return {`,
        to: `    } catch (error) {\n      if (error !== null) throw error\n      return {`,
      },
    ],
    tests: ['test/operations/unreadable.test.ts'],
  },
  {
    name: 'run an operation from its start whose steps cannot be read',
    file: 'src/operation/run-operation.ts',
    edits: [{ from: `  if (resumed?.unreadable === true) return null\n`, to: `` }],
    tests: ['test/operations/unreadable.test.ts'],
  },
  {
    name: 'count owners that ended well among those that vanished',
    file: 'src/store/postgres/sql/operations.ts',
    edits: [{ from: `AND e.outcome <> 'abandoned'`, to: `AND e.outcome = 'none'` }],
    tests: ['test/operations/lost-ownership.faults.test.ts'],
    only: 'ended well do not wear',
  },
  {
    name: 'count no owners that vanished',
    file: 'src/operation/run-operation.ts',
    edits: [{ from: `(attempt.resumed?.vanished ?? 0) >= LIMITS.ownersMax`, to: `LIMITS.ownersMax < 0` }],
    tests: ['test/operations/forgotten-await.test.ts'],
    only: 'after so many owners',
  },
  {
    name: 'kinds: let the code that comes after a vanished handler decide',
    file: 'src/record/transitions.ts',
    edits: [
      {
        from: `claim.takeover === 'resume' && mayFollow(record.kind, claim.claimant.kind)`,
        to: `claim.takeover === 'resume'`,
      },
    ],
    tests: ['test/contract/kinds.test.ts'],
    only: 'is not run again',
  },
  {
    name: 'kinds: let workers go on with a handler that followed an operation',
    file: 'src/store/postgres/sql/operations.ts',
    edits: [
      { from: ` AND \${KIND} = 'o'\nORDER BY attempted_at`, to: `\nORDER BY attempted_at` },
      { from: `    AND (state IN ('retryable', 'expired') OR \${PREVIOUS_KIND} = 'o')\n`, to: `` },
    ],
    tests: ['test/contract/kinds.test.ts'],
    only: 'no worker goes on with it',
  },
  {
    name: 'driver: take a time-out of pg for a throw of the work',
    file: 'src/store/postgres/ends.ts',
    edits: [{ from: `isCausedBy(error, lost) ? trouble : error, trouble }`, to: `error }` }],
    tests: [DRIVER],
    only: 'a time-out of pg itself',
  },
  {
    name: 'driver: take too few values for a store that is away',
    file: 'src/store/postgres/classify.ts',
    edits: [{ from: `isWrongBind(error) ? 'other' : 'connection'`, to: `'connection'` }],
    tests: [DRIVER],
    only: 'no word that the store is away',
  },
  {
    name: 'driver: show clients what the driver says of a claim',
    file: 'src/operation/stop.ts',
    edits: [{ from: `error: unproved(error, 'not_applied') }`, to: `error }` }],
    tests: [DRIVER],
    only: 'where it is claimed',
  },
  {
    name: 'driver: show clients what the driver says of a look',
    file: 'src/operation/run-operation.ts',
    edits: [{ from: `house.store.look(id).catch(throwOfStore)`, to: `house.store.look(id)` }],
    tests: [DRIVER],
    only: 'where it is looked up',
  },
  {
    name: 'take a rollback for that of a savepoint because of a word in the text',
    file: 'src/store/postgres/tx.ts',
    edits: [{ from: `!isToSavepoint(text ?? '')`, to: `!/\\bto\\b/i.test(text ?? '')` }],
    tests: ['test/contract/misuse-ended.test.ts'],
    only: 'go to',
  },
  {
    name: 'take headers into a reply that cannot be sent',
    file: 'src/protect/sendable.ts',
    edits: [{ from: `!VALUE.test(value)`, to: `false` }],
    tests: ['test/operations/misuse.test.ts'],
    only: 'which cannot be sent',
  },
  {
    name: 'store a status that is not final',
    file: 'src/http/reply.ts',
    edits: [{ from: `status < 200`, to: `status < 0` }],
    tests: ['test/contract/not-final-status.test.ts'],
  },
  {
    name: 'read a body again for each message of its schema',
    file: 'src/http/validate.ts',
    edits: [
      { from: `  const texts = textsOf(value)\n`, to: `` },
      { from: `issueOf(issue, texts))`, to: `issueOf(issue, textsOf(value)))` },
    ],
    tests: ['src/http/validate.test.ts'],
  },
  {
    name: 'recover: complete a record with nothing',
    file: 'src/protect/recover.ts',
    edits: [{ from: `if (!('value' in answer))`, to: `if (false)` }],
    tests: ['test/contract/recover.test.ts'],
    only: 'to the end',
  },
  {
    name: 'truth: take a status that may run again for a proof that nothing was done',
    file: 'src/protect/handler.ts',
    edits: [{ from: `effectsPossible || end.byStatus === true`, to: `effectsPossible` }],
    tests: ['test/truth/proof.test.ts'],
    only: 'by the rules of its route',
  },
  {
    name: 'idle: tell of a connection that is gone, and not why, where the end is read late',
    file: 'src/store/postgres/ends.ts',
    edits: [{ from: `endByServer(lost, failure)`, to: `endByServer(lost)` }],
    tests: ['test/contract/idle-late.test.ts'],
    only: 'sends a statement next',
  },
  {
    name: 'idle: take an idle transaction for a collision, where the end is read behind COMMIT',
    file: 'src/store/postgres/work-transaction.ts',
    edits: [
      { from: `byServer ?? this.connections.translate(error)`, to: `this.connections.translate(error)` },
    ],
    tests: ['test/contract/idle-late.test.ts'],
    only: 'sends the record next',
  },
  {
    name: 'tx: tell a COPY that cannot be sent as a store that is away',
    file: 'src/store/postgres/tx-query.ts',
    edits: [{ from: `    this.#copies = true\n`, to: `` }],
    tests: ['test/contract/misuse-ended.test.ts'],
    only: 'COPY from the client.* alone',
  },
  {
    name: 'tx: read what is quoted in a text as its statements',
    file: 'src/store/postgres/tx.ts',
    edits: [{ from: `? text : text.replace(QUOTED, "''")`, to: `? text : text.replace(QUOTED, '$&')` }],
    tests: ['test/contract/misuse-ended.test.ts'],
    only: 'is about a savepoint',
  },
  {
    name: 'tx: take a quote in a comment for the beginning of a text',
    file: 'src/store/postgres/tx.ts',
    edits: [{ from: `/--|\\/\\*|\\\\/.test(text)`, to: `/no such text/.test(text)` }],
    tests: ['test/contract/misuse-ended.test.ts'],
    only: 'what is told as executed',
  },
]
