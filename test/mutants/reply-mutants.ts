import type { Mutant } from './mutants.ts'

const NODE = ['test/adapters/node.test.ts']
const HONO = ['test/adapters/hono.test.ts']
const LATE = 'A reply after the time of its handler'

/** Faults in what becomes of replies that come late, or that a handler has not written itself. */
export const REPLY_MUTANTS: readonly Mutant[] = [
  {
    name: 'replies: let an operator leave a reply that no call from code can read',
    file: 'src/protect/given-reply.ts',
    edits: [{ from: `if (!isJson(body)) {`, to: `if (body.length === 1) {` }],
    tests: ['test/contract/operator.test.ts'],
    only: 'what is refused',
  },
  {
    name: 'replies: drop what a handler writes after its time',
    file: 'src/http/adapters/node/capture.ts',
    edits: [{ from: `this.#late?.takeOver(this.#writers)`, to: `this.#late?.takeOver({})` }],
    tests: NODE,
    only: LATE,
  },
  {
    name: 'replies: stop the streams of a handler when its client is answered',
    file: 'src/http/adapters/node/late.ts',
    edits: [
      {
        from: `for (const listener of inner) response.removeListener(event, listener)`,
        to: `for (const listener of [] as typeof inner) response.removeListener(event, listener)`,
      },
    ],
    tests: NODE,
    only: LATE,
  },
  {
    name: 'replies: store the late failure of a handler',
    file: 'src/protect/handler.ts',
    edits: [{ from: `  if (!failed) await save(`, to: `  if (failed || !failed) await save(` }],
    tests: NODE,
    only: LATE,
  },
  {
    name: 'replies: take the answer of the layer for the late reply in Hono',
    file: 'src/http/adapters/hono/index.ts',
    edits: [{ from: `isRunning ? lateResponse(c, response) : response`, to: `response` }],
    tests: HONO,
    only: LATE,
  },
  {
    name: 'replies: look after a handler that was given up by another grace',
    file: 'src/protect/handler.ts',
    edits: [
      {
        from: `leaveInDoubt(store, owned, recovery.graceMs, heartbeat, request.rerunnable)`,
        to: `leaveInDoubt(store, owned, 30_000, heartbeat, request.rerunnable)`,
      },
    ],
    tests: ['test/contract/late-reply.test.ts'],
    only: 'grace_ms',
  },
  {
    name: 'replies: keep a stored reply from a client whose deadline is past',
    file: 'src/http/past.ts',
    edits: [{ from: `typeof known === 'string'`, to: `known !== null` }],
    tests: NODE,
    only: 'a deadline that is past',
  },
  {
    name: 'replies: let the framework answer notExecuted()',
    file: 'src/http/context.ts',
    edits: [{ from: `if (provesNothingDone(thrown)) this.statement = thrown`, to: `` }],
    tests: NODE,
    only: 'Failures',
  },
  {
    name: 'replies: call a transaction retryable whose function ignored an error',
    file: 'src/store/postgres/ends.ts',
    edits: [{ from: `{ ...end, wentOn: true }`, to: `end` }],
    tests: ['test/contract/ignored-error.test.ts'],
  },
  {
    name: 'replies: let a last sign of life take back that a handler was given up',
    file: 'src/protect/in-time.ts',
    edits: [
      {
        from: `  return heartbeat\n    .timeIsOver()\n    .then(`,
        to: `  return Promise.resolve()\n    .then(`,
      },
    ],
    tests: ['test/contract/late-reply.test.ts'],
    only: 'sign of life',
  },
]
