import type { Mutant } from './mutants.ts'

const KEYS = 'apps/payments/test/api-keys.test.ts'
const OPS = 'apps/payments/test/api-ops-records.test.ts'
const ANSWERS = 'apps/payments/test/api-answers.test.ts'
const HANG_UPS = 'apps/payments/test/hostile-hang-up.test.ts'
const POOLED = { tests: ['test/pgbouncer/service.test.ts'], config: 'vitest.pgbouncer.config.ts' } as const

/** Faults in what the payment service tells clients and operators of keys and records. */
const KEY_MUTANTS: readonly Mutant[] = [
  {
    name: 'key status: tell an account of the keys of another',
    file: 'apps/payments/api/idempotency-keys.ts',
    edits: [
      {
        from: '({ account, operation, key })),',
        to: '({ account: ((globalThis as { first?: string }).first ??= account), operation, key })),',
      },
    ],
    tests: [KEYS],
    only: 'its own account alone',
  },
  {
    name: 'key status: say that a key without a record was not executed',
    file: 'apps/payments/api/idempotency-keys.ts',
    edits: [
      { from: 'detail: known ? KNOWN : NOT_KNOWN', to: 'detail: known ? KNOWN : STORIES.retryable.detail' },
    ],
    tests: [KEYS],
    only: 'that has no record',
  },
  {
    name: 'key status: say that a request in doubt was not executed',
    file: 'apps/payments/api/idempotency-keys.ts',
    edits: [{ from: ': STORIES[state]),', to: ': STORIES[state === "unknown" ? "retryable" : state]),' }],
    tests: [KEYS],
    only: 'has no outcome',
  },
  {
    name: 'settings: ask for a key to issue a key',
    file: 'apps/payments/api/idempotency-keys.ts',
    edits: [{ from: 'config: { keyless: true },', to: '' }],
    tests: [KEYS],
    only: 'issued without',
  },
  {
    name: 'settings: issue keys that outlive the record of their use',
    file: 'apps/payments/api/idempotency-keys.ts',
    edits: [{ from: 'Math.min(issuedKeyLifetimeMaxMs, keptMs)', to: 'issuedKeyLifetimeMaxMs' }],
    tests: [KEYS],
    only: 'lives no longer',
  },
  {
    name: 'settings: take keys of clients where issued ones are required',
    file: 'apps/payments/key-settings.ts',
    edits: [
      { from: `['accepted', 'required']) ?? 'accepted'`, to: `['accepted', 'required']) && 'accepted'` },
    ],
    tests: [KEYS],
    only: 'the only one that is taken',
  },
  {
    name: 'settings: keep records for a time of our own',
    file: 'apps/payments/service.ts',
    edits: [
      {
        from: `      retentionMs: config.keys.retentionMs,
      ...(config`,
        to: '      ...(config',
      },
    ],
    tests: [KEYS],
    only: 'is a setting',
  },
  {
    name: 'settings: begin what the deadline of its client forbids',
    file: 'apps/payments/api/index.ts',
    edits: [{ from: '{ deadlineHeader: keys.deadlineHeader }', to: '{}' }],
    tests: [KEYS],
    only: 'from the header',
  },
  {
    name: 'settings: call the processor however late it is',
    file: 'apps/payments/api/index.ts',
    edits: [{ from: '{ deadlineMs: keys.callsDeadlineMs }', to: '{}' }],
    tests: [KEYS],
    only: 'nothing is sent to the processor any more',
  },
]

const OPS_MUTANTS: readonly Mutant[] = [
  {
    name: 'keys: keep the key of a request about endpoints that did nothing',
    file: 'apps/payments/api/errors.ts',
    edits: [{ from: 'if (nothingDone) request.idempotency?.invalid()', to: '' }],
    tests: ['apps/payments/test/api-webhooks.test.ts'],
    only: 'a refusal about an endpoint has done nothing',
  },
  {
    name: 'keys: say that nothing was done where a step was',
    file: 'apps/payments/api/idempotency-keys.ts',
    edits: [{ from: ' && record.recoveryPoint === null', to: '' }],
    tests: [KEYS],
    only: 'is told where it has no outcome: not executed',
  },
  {
    name: 'let the public key of the demo in wherever the database has it',
    file: 'apps/payments/accounts/authenticate.ts',
    edits: [{ from: '!demo && isDemoKey(key)', to: 'demo === null' }],
    tests: ['apps/payments/test/api-auth.test.ts'],
    only: 'of the demo opens nothing',
  },
  {
    name: 'ops: show records to accounts',
    file: 'apps/payments/api/ops-records.ts',
    edits: [{ from: `app.addHook('onRequest', requireOpsToken(service, service.strangers))`, to: '' }],
    tests: [OPS],
    only: 'to operators alone',
  },
  {
    name: 'ops: decide about a record that has changed since it was seen',
    file: 'apps/payments/payments/decisions.ts',
    edits: [{ from: '(seen.fence !== fence || ', to: '(' }],
    tests: [OPS],
    only: 'is decided upon',
  },
  {
    name: 'ops: post what the books of the processor cannot be compared with',
    file: 'apps/payments/payments/found.ts',
    edits: [{ from: 'if (gatewayId === undefined && kind', to: 'if (gatewayId === null && kind' }],
    tests: [OPS],
    only: 'is decided upon',
  },
  {
    name: 'ops: answer retries in other words than the operator gave',
    file: 'apps/payments/payments/decisions.ts',
    edits: [{ from: 'if (given !== undefined) return given\n', to: '' }],
    tests: [OPS],
    only: 'gets the reply',
  },
  {
    name: 'ops: void a call by a decision that lets nothing run again',
    file: 'apps/payments/api/ops-records.ts',
    edits: [{ from: `rest.decision !== 'retry'`, to: `rest.decision === 'park'` }],
    tests: [OPS],
    only: 'tried again under a new key',
  },
  {
    name: 'ops: take evidence and leave its record parked',
    file: 'apps/payments/api/ops-records.ts',
    edits: [{ from: `if (state === 'parked') await operator`, to: `if (state === 'none') await operator` }],
    tests: [OPS],
    only: 'once there is evidence',
  },
  {
    name: 'payer: erase those of all payments',
    file: 'apps/payments/payments/sql-unsettled.ts',
    edits: [{ from: 'AND p.payer = $2', to: 'AND $2::text IS NOT NULL' }],
    tests: [OPS],
    only: 'is erased',
  },
  {
    name: 'payer: erase it and leave what was noted of refunds',
    file: 'apps/payments/payments/sql-unsettled.ts',
    edits: [{ from: 'FROM changed WHERE $3::text IS NULL AND', to: 'FROM changed WHERE false AND' }],
    tests: [OPS],
    only: 'is erased',
  },
  {
    name: 'payer: forget one of the other mode',
    file: 'apps/payments/api/ops.ts',
    edits: [
      {
        from: `:\${body.mode}\``,
        to: `:test\``,
      },
    ],
    tests: [OPS],
    only: 'is given another name',
  },
  {
    name: 'payer: make a new pseudonym for each page',
    file: 'apps/payments/api/ops.ts',
    edits: [{ from: `(body.pseudonym ?? makeId('payer'))`, to: `makeId('payer')` }],
    tests: [OPS],
    only: 'is given another name',
  },
]

const DOCUMENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'document: leave out a refusal that clients get',
    file: 'apps/payments/api/answers.ts',
    edits: [
      { from: `  'POST /v1/payments': [\n    'payment_declined',\n`, to: `  'POST /v1/payments': [\n` },
    ],
    tests: [ANSWERS],
  },
  {
    name: 'document: name a refusal that no client gets',
    file: 'apps/payments/api/answers.ts',
    edits: [
      {
        from: `'GET /v1/transfers/:transfer': ['not_found']`,
        to: `'GET /v1/transfers/:transfer': ['not_found', 'destination_unknown']`,
      },
    ],
    tests: [ANSWERS],
  },
  {
    name: 'document: leave out the headers that say when to come back',
    file: 'apps/payments/api/openapi-answers.ts',
    edits: [{ from: '...(status !== 401 && LIMITED),', to: '' }],
    tests: [ANSWERS],
  },
  {
    name: 'document: name codes and not what a client does next',
    file: 'apps/payments/api/openapi-answers.ts',
    edits: [{ from: `const description = codes.map(`, to: `const description = codes.slice(1).map(` }],
    tests: [ANSWERS],
  },
  {
    name: 'document: leave out a route',
    file: 'apps/payments/api/balances.ts',
    edits: [{ from: `summary: 'List the balances of the account',`, to: 'hide: true,' }],
    tests: ['apps/payments/test/api-openapi.test.ts'],
    only: 'has every route',
  },
]

/** What keeps a place, or a connection, for a client that is gone. */
const PLACE_MUTANTS: readonly Mutant[] = [
  {
    name: 'hang-ups: count a client for ever that has gone while its key was looked up',
    file: 'apps/payments/api/under-way.ts',
    edits: [{ from: 'if (response.closed || socket.destroyed) {', to: 'if (socket === null) {' }],
    tests: [HANG_UPS],
    only: 'while its API key is looked up',
  },
  {
    name: 'hang-ups: count requests for ever that were sent behind another one',
    file: 'apps/payments/api/under-way.ts',
    edits: [{ from: `socket.once('close', () => {`, to: `socket.once('never', () => {` }],
    tests: [HANG_UPS],
    only: 'with several requests under way',
  },
  {
    name: 'links: wait for an API key on a silent link',
    file: 'apps/payments/database/bounded.ts',
    edits: [{ from: ', query_timeout: maxMs', to: '' }],
    tests: ['apps/payments/test/database-away.faults.test.ts'],
    only: 'is given up, and the next one is served',
  },
  {
    name: 'cards: read what is percent-encoded once',
    file: 'apps/payments/api/cards.ts',
    edits: [{ from: 'times <= API_LIMITS.percentDecodedTimesMax', to: 'times <= 1' }],
    tests: ['apps/payments/test/hostile-cards.test.ts'],
    only: 'a URL inside of a URL',
  },
  {
    name: 'cards: take digits of other scripts by their place in memory',
    file: 'src/key/card-inside.ts',
    edits: [{ from: `return \`\${value}\``, to: `return \`\${digit.charCodeAt(0) & 0xf}\`` }],
    tests: ['src/key/card-inside.test.ts'],
  },
  {
    name: 'reads: list events over all connections of the library',
    file: 'apps/payments/api/events.ts',
    edits: [{ from: 'reads.turn(account, () => messages.list(filter))', to: 'messages.list(filter)' }],
    tests: ['apps/payments/test/hostile-storage.faults.test.ts'],
    only: 'connections of the library: events',
  },
  {
    name: 'ops: take a reply that cannot be sent for a fault of ours',
    file: 'apps/payments/api/ops-records.ts',
    edits: [{ from: '.catch(refuseReply)', to: '' }],
    tests: [OPS],
    only: 'gets the reply',
  },
  {
    name: 'pooler: let reads take as long as they like',
    file: 'apps/payments/database/reads.ts',
    edits: [{ from: `; SET LOCAL statement_timeout = \${LIMITS.readMaxMs}`, to: '' }],
    ...POOLED,
    only: 'ended by the server',
  },
  {
    name: 'pooler: leave the bounds of a read to the next who uses its connection',
    file: 'apps/payments/database/reads.ts',
    edits: [{ from: 'SET LOCAL statement_timeout', to: 'SET statement_timeout' }],
    ...POOLED,
    only: 'leaves its bounds to nobody',
  },
]

export const SERVICE_MUTANTS: readonly Mutant[] = [
  ...KEY_MUTANTS,
  ...OPS_MUTANTS,
  ...DOCUMENT_MUTANTS,
  ...PLACE_MUTANTS,
  {
    name: 'service: try for ever to make a folder where none can be made',
    file: 'apps/payments/data-folder.ts',
    edits: [{ from: 'await make(resolve(folder))', to: 'await mkdir(resolve(folder), { recursive: true })' }],
    tests: ['apps/payments/test/start.faults.test.ts'],
    only: 'says so in one line and ends',
  },
  {
    name: 'service: count no refusals, so that no alarm knows of an overload',
    file: 'apps/payments/api/index.ts',
    edits: [{ from: 'countRefusal(service, told)', to: '' }],
    tests: ['apps/payments/test/limits.test.ts'],
    only: 'refuses new work at once',
  },
  {
    name: 'service: count no differences of books, so that no alarm knows of them',
    file: 'apps/payments/reconcile/worker.ts',
    edits: [{ from: 'doors.counts?.booksDiffer(books, fresh)', to: '' }],
    tests: ['apps/payments/reconcile/worker.test.ts'],
    only: 'is compared when it is some hours old',
  },
  {
    name: 'payments: let one payment that cannot be written keep the marker from all others',
    file: 'apps/payments/payments/workers.ts',
    edits: [{ from: 'await each(rows, look)', to: 'for (const row of rows) await look(row)' }],
    tests: ['apps/payments/test/payments-workers.faults.test.ts'],
    only: 'tells of the others all the same',
  },
]
