import type { Mutant } from './mutants.ts'

/** The suite of adapters on the one that is built and answered fastest; each names the topic that has to notice. */
const NODE = ['test/adapters/node.test.ts']
const BEGUN = 'test/contract/deadline-begun.test.ts'
const BOUNDARY = 'src/http/boundary.ts'
const PREPARE = 'src/http/prepare.ts'
const REPLY = 'src/http/reply.ts'
const SERVE = 'src/http/adapters/node/serve.ts'

/** Faults in the HTTP contract and in what holds replies back. */
export const BOUNDARY_MUTANTS: readonly Mutant[] = [
  {
    name: 'send the reply before it is durable',
    file: SERVE,
    edits: [{ from: `if (boundary.policy.stream) {`, to: `if (boundary.policy !== null) {` }],
    tests: NODE,
    only: 'Nothing leaves before it is durable',
  },
  {
    name: 'store and replay Set-Cookie',
    file: REPLY,
    edits: [{ from: `  'location',\n`, to: `  'location',\n  'set-cookie',\n` }],
    tests: NODE,
    only: 'Headers',
  },
  {
    name: 'replay without saying so',
    file: REPLY,
    edits: [{ from: `headers: [...headers, REPLAYED], body`, to: `headers: [...headers], body` }],
    tests: NODE,
    only: 'Headers',
  },
  {
    name: 'take the first of several keys',
    file: SERVE,
    edits: [
      {
        from: `return values === undefined || values.length !== 1 ? values : values[0]`,
        to: `return values?.[0]`,
      },
    ],
    tests: NODE,
    only: 'Keys',
  },
  {
    name: 'leave the account out of the scope of a request',
    file: PREPARE,
    edits: [{ from: `scopeOf(request.account, name)`, to: `scopeOf('everybody', name)` }],
    tests: NODE,
    only: 'What counts as the same request',
  },
  {
    name: 'let requests of nobody share an account',
    file: PREPARE,
    edits: [
      { from: `if (request.account === null) throw new OnlyonceError('account_missing')\n`, to: `` },
      { from: `scopeOf(request.account, name)`, to: `scopeOf(request.account ?? 'nobody', name)` },
    ],
    tests: NODE,
    only: 'Failures|Keys',
  },
  {
    name: 'leave the path out of what a request means',
    file: 'src/http/request.ts',
    edits: [{ from: `pathParams: placeOf(request)`, to: `pathParams: {}` }],
    tests: NODE,
    only: 'What counts as the same request',
  },
  {
    name: 'leave the query out of what a request means',
    file: 'src/http/request.ts',
    edits: [{ from: `query: \`?\${query}\`,`, to: `query: '',` }],
    tests: NODE,
    only: 'What counts as the same request',
  },
  {
    name: 'run a handler again that answered 5xx',
    file: 'src/http/final.ts',
    edits: [{ from: `return protect === 'handler' ? 'store' : 'retry'`, to: `return 'retry'` }],
    tests: NODE,
    only: 'Which replies are final',
  },
  {
    name: 'start what is past its deadline',
    file: BOUNDARY,
    edits: [
      { from: `if (prepared.deadline?.passed) return`, to: `if (prepared.deadline?.leftMs === -1) return` },
      { from: `    if (deadline?.passed) return`, to: `    if (deadline?.leftMs === -1) return` },
      { from: `      lateStart(deadline) ??`, to: `      lateStart(null) ??` },
    ],
    tests: NODE,
    only: 'A store that is away',
  },
  {
    name: 'start what came to be past its deadline before it could begin',
    file: BOUNDARY,
    edits: [
      { from: `    if (deadline?.passed) return`, to: `    if (deadline?.leftMs === -1) return` },
      { from: `      lateStart(deadline) ??`, to: `      lateStart(null) ??` },
      { from: `Math.min(request.deadlineMs, deadline?.leftMs ?? request.deadlineMs)`, to: `60_000` },
    ],
    tests: ['test/rate-limits/admit-time.test.ts'],
  },
  {
    name: 'answer that nothing happened where nobody knows',
    file: BOUNDARY,
    edits: [{ from: `new OnlyonceError('outcome_pending')`, to: `new OnlyonceError('not_executed')` }],
    tests: NODE,
    only: 'A store that is away',
  },
  {
    name: 'take another request for a duplicate while the first is in progress',
    file: 'src/protect/single-flight/flights.ts',
    edits: [{ from: `const same = flight.digest.equals(digest)`, to: `const same = true` }],
    tests: NODE,
    only: 'Duplicates at the same time',
  },
  {
    name: 'call a finished operation in progress while a retry looks it up',
    file: 'src/operation/run-operation.ts',
    edits: [
      {
        from: `  const deadline = new Deadline(request.deadlineMs)
`,
        to: `  begin()
  const deadline = new Deadline(request.deadlineMs)
`,
      },
    ],
    tests: ['test/contract/at-once.test.ts'],
    only: 'all replays',
  },
  {
    name: 'call the key of a retry reused because a wrong request was looked up first',
    file: 'src/protect/single-flight/flights.ts',
    edits: [{ from: `if (!same && flight.running)`, to: `if (!same)` }],
    tests: ['test/contract/at-once.test.ts'],
    only: 'behind another request',
  },
  {
    name: 'let a client that hangs up end the work',
    file: 'src/http/adapters/node/shield.ts',
    edits: [{ from: `    if (this.#raised) return\n`, to: `    if (!this.#raised) return\n` }],
    tests: NODE,
    only: 'Connections',
  },
  {
    name: 'run a handler again whose reply was too large to be kept',
    file: BOUNDARY,
    edits: [
      {
        from: `if (context.nothingDone || this.policy.final(reply.status) === 'retry') {`,
        to: `if (context.nothingDone || reply.body.length > this.policy.replySizeMaxBytes) {`,
      },
    ],
    tests: NODE,
    only: 'Bodies come back',
  },
  {
    name: 'let a request through when the store is away',
    file: BOUNDARY,
    edits: [
      {
        from: `throw error\n      return this.#problem(errorOf(error, ran.begun ? this.policy.protect : null), { at: prepared.at })`,
        to: `throw error\n      return PASS`,
      },
    ],
    tests: NODE,
    only: 'A store that is away',
  },
  {
    name: 'ask whether a replay is admitted',
    file: 'src/protect/would-run.ts',
    edits: [{ from: `return record.state === 'retryable' && matches`, to: `return matches` }],
    tests: NODE,
    only: 'Admission',
  },
  {
    name: 'claim the key of a request that was not admitted',
    file: BOUNDARY,
    edits: [
      {
        from: `ran).then(() => this.#claim(prepared, run, ran))`,
        to: `ran).finally(() => this.#claim(prepared, run, ran))`,
      },
    ],
    tests: NODE,
    only: 'Admission',
  },
  {
    name: "end a handler's time with the client's deadline",
    file: BOUNDARY,
    edits: [
      {
        from: `leased(claimInTime(prepared), bounds)`,
        to: `leased(claimInTime(prepared), deadline === null ? bounds : { ...bounds, inProgressMaxMs: Math.ceil(deadline.leftMs) })`,
      },
    ],
    tests: ['test/contract/deadline-header.test.ts'],
  },
  {
    name: "cut the lease of an operation to the client's deadline",
    file: BOUNDARY,
    edits: [
      {
        from: `const leased = requests.leased(request, bounds)`,
        to: `const leased = requests.leased(request, { ...bounds, inProgressMaxMs: Math.ceil(deadline?.leftMs ?? 1) })`,
      },
    ],
    tests: [BEGUN],
    only: 'a saga keeps the lease',
  },
  {
    name: 'leave undone what a saga has to undo after the deadline',
    file: 'src/operation/call-site.ts',
    edits: [{ from: `kind === 'undo_foreign' || !begins`, to: `!begins` }],
    tests: [BEGUN],
    only: 'fails after the deadline is undone',
  },
  {
    name: "end a transaction with the client's deadline",
    file: BOUNDARY,
    edits: [
      {
        from: `this.#engine.transaction(request, work`,
        to: `this.#engine.transaction(claimInTime(prepared), work`,
      },
    ],
    tests: [BEGUN],
    only: 'a transaction is committed',
  },
  {
    name: "end the steps of an operation with the client's deadline",
    file: 'src/operation/run-operation.ts',
    edits: [
      {
        from: `      deadline,
      beginsUntil,`,
        to: `      deadline: beginsUntil,
      beginsUntil,`,
      },
    ],
    tests: [BEGUN],
    only: 'the step behind it is written',
  },
  {
    name: 'call a handler whose claim took longer than its client waits for a start',
    file: BOUNDARY,
    edits: [{ from: `      lateStart(deadline) ??`, to: `      lateStart(null) ??` }],
    tests: [BEGUN],
    only: 'a handler whose claim took longer',
  },
  {
    name: 'begin the first step of an operation after the deadline',
    file: 'src/operation/step.ts',
    edits: [
      {
        from: `hold.owned === null && hold.attempt.beginsUntil.passed`,
        to: `hold.attempt.beginsUntil.leftMs === -1`,
      },
    ],
    tests: [BEGUN],
    only: 'the first step of an operation',
  },
  {
    name: 'give an operation a rounded number',
    file: 'src/http/operation-input.ts',
    edits: [{ from: 'if (inexact === undefined) return value', to: 'if (inexact !== null) return value' }],
    tests: NODE,
    only: 'Durable operations',
  },
  {
    name: 'store null for an invalid date',
    file: 'src/record/value.ts',
    edits: [{ from: "refuse(name, 'is an invalid date')", to: 'return value' }],
    tests: ['test/contract/unstorable.test.ts'],
  },
  {
    name: 'store {} for an error',
    file: 'src/record/value.ts',
    edits: [{ from: 'if (value !== null) refuseHidden(name, value)', to: '' }],
    tests: ['test/contract/unstorable.test.ts'],
  },
  {
    name: 'take a throw without a value for "go on"',
    file: 'src/http/adapters/said.ts',
    edits: [
      {
        from: `if (thrown && thrown !== 'route' && thrown !== 'router') return thrown`,
        to: `if (1) return thrown`,
      },
    ],
    tests: ['test/adapters/express5.test.ts'],
    only: 'never lets the handler run',
  },
  {
    name: 'commit what a handler did before it threw an error with a status of its own',
    file: 'src/http/adapters/said.ts',
    edits: [{ from: ` || context?.rollsBack === true`, to: `` }],
    tests: ['test/adapters/express5.test.ts'],
    only: 'rolls back all the same',
  },
]
