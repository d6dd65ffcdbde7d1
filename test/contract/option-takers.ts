/** Everything public that takes options, each called with one that it does not know. */
import pg from 'pg'
import { afterAll } from 'vitest'
import * as root from '../../src/index.ts'
import { locks } from '../../src/locks/index.ts'
import { operator } from '../../src/operator/index.ts'
import { inbox, outbox, relay } from '../../src/outbox/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { receiveWebhook, signWebhook, verifyWebhook, webhooks } from '../../src/webhooks/index.ts'
import { startWorkers } from '../../src/workers/index.ts'

const secret = 'a secret of at least thirty-two bytes'
export const STRAY = { unheardOf: 1 }
export const pool = new pg.Pool({ connectionString: 'postgres://nobody@127.0.0.1:1/nothing' })
export const once = root.onlyonce({ store: postgres({ pool }), secret })
export const account = () => 'acme'
const call = { account: 'acme', operation: 'orders.create', key: 'a-key-that-is-long' }
const id = { account: 'acme', id: 'we_1' }
const signature = { by: 'ann', why: 'because' }
const hooks = webhooks(once)
afterAll(() => pool.end())

export type Door = Record<string, unknown>
export type Give = (door: Door) => unknown
/** Takes no options at all, or only a name of something, of which no member may be left out. */
export const NO_OPTIONS = 'no options'
type Table = Readonly<Record<string, Give | typeof NO_OPTIONS>>

// biome-ignore lint/suspicious/noExplicitAny: what is wrong on purpose has no type.
export const any = (value: any): any => value

const IDEMPOTENT: Give = (door) => any(door.idempotent)(once, { account, ...STRAY }, () => {})

export const EXPORTS: Readonly<Record<string, Table>> = {
  '.': {
    OnlyonceError: NO_OPTIONS,
    OperationReply: NO_OPTIONS,
    businessKey: NO_OPTIONS,
    callRefused: NO_OPTIONS,
    invalid: () => root.invalid(any(STRAY)),
    notExecuted: NO_OPTIONS,
    onlyonce: () => root.onlyonce(any({ store: memory(), secret, ...STRAY })),
    operation: NO_OPTIONS,
    reply: NO_OPTIONS,
    unwrap: NO_OPTIONS,
  },
  './store': {},
  './outbox': {
    httpPublisher: (door) => any(door.httpPublisher)({ url: 'http://127.0.0.1', ...STRAY }),
    inbox: NO_OPTIONS,
    outbox: NO_OPTIONS,
    relay: (door) => any(door.relay)(once, { jobs: { one: async () => {} }, ...STRAY }),
  },
  './orm': {
    currentTx: NO_OPTIONS,
    driverOf: NO_OPTIONS,
    fromDrizzle: NO_OPTIONS,
    fromKnex: NO_OPTIONS,
    fromKysely: NO_OPTIONS,
    fromPrisma: NO_OPTIONS,
    fromTypeorm: NO_OPTIONS,
    mikroormTransaction: NO_OPTIONS,
    poolOf: NO_OPTIONS,
    sequelizeTransaction: NO_OPTIONS,
    typeormManager: NO_OPTIONS,
  },
  './locks': { assertFence: NO_OPTIONS, locks: NO_OPTIONS },
  './workers': {
    addEvidence: (door) => any(door.addEvidence)(once, { account: 'acme', key: 'k', result: 1, ...STRAY }),
    completer: (door) => any(door.completer)(once, STRAY),
    reaper: (door) => any(door.reaper)(once, { mode: 'delete', ...STRAY }),
    reconciler: (door) => any(door.reconciler)(once, STRAY),
    recoverer: (door) => any(door.recoverer)(once, STRAY),
    startWorkers: (door) => any(door.startWorkers)(once, STRAY),
  },
  './operator': { operator: NO_OPTIONS },
  './observe': { logFields: NO_OPTIONS, logTo: NO_OPTIONS },
  './errors': { ERRORS: NO_OPTIONS, OnlyonceError: NO_OPTIONS },
  './limits': { LIMITS: NO_OPTIONS },
  './keys': {
    derivedKey: NO_OPTIONS,
    holdsCardNumber: NO_OPTIONS,
    maskCardNumbers: NO_OPTIONS,
    parseKeyHeader: (door) => any(door.parseKeyHeader)('a-key-that-is-long', STRAY),
  },
  './json': { parseStrictJson: (door) => any(door.parseStrictJson)('{}', STRAY) },
  './http': {},
  './postgres': {
    migrate: (door) => any(door.migrate)(pool, { schema: 'onlyonce', mode: 'verify', ...STRAY }),
    postgres: (door) => any(door.postgres)({ pool, ...STRAY }),
  },
  './memory': { memory: (door) => any(door.memory)(STRAY) },
  './embedded': {
    startEmbeddedPostgres: (door) => any(door.startEmbeddedPostgres)({ folder: 'none', ...STRAY }),
  },
  './prometheus': { prometheus: (door) => any(door.prometheus)(STRAY) },
  './opentelemetry': { openTelemetry: (door) => any(door.openTelemetry)(STRAY) },
  './rate-limits': {
    admissionOf: (door) => any(door.admissionOf)({ allowed: false, name: 'live' }, STRAY),
    limitHeaders: (door) => any(door.limitHeaders)({ allowed: false, name: 'live' }, STRAY),
    overload: (door) => any(door.overload)({ inFlightMax: 1, lagMaxMs: 1, ...STRAY }),
    rateLimit: (door) => any(door.rateLimit)({ pool, name: 'live', points: 1, perMs: 1, ...STRAY }),
    velocityLimit: (door) =>
      any(door.velocityLimit)({ pool, name: 'card', secret, rules: [{ points: 1, perMs: 1 }], ...STRAY }),
  },
  './client': {
    Executed: NO_OPTIONS,
    NotExecuted: NO_OPTIONS,
    OutcomeUnknown: NO_OPTIONS,
    idempotentFetch: (door) => any(door.idempotentFetch)(STRAY),
  },
  './client/keys': {
    businessKey: NO_OPTIONS,
    indexedDbStorage: NO_OPTIONS,
    memoryStorage: NO_OPTIONS,
    pendingAction: (door) => any(door.pendingAction)('checkout', { user: null, ...STRAY }),
  },
  // A hook runs in a component alone. It hands its options to pendingAction.
  './react': { useIdempotentAction: NO_OPTIONS },
  './webhooks': {
    isPublicAddress: NO_OPTIONS,
    receiveWebhook: () =>
      receiveWebhook(once, any({ account: 'acme', source: 's', id: '1', payload: Buffer.of(), ...STRAY })),
    signWebhook: () =>
      signWebhook(any({ scheme: 'standard', id: 'm', body: Buffer.of(), secrets: 'whsec_AAAA', ...STRAY })),
    verifyWebhook: () =>
      verifyWebhook(any({ scheme: 'stripe', headers: {}, body: Buffer.of(), secrets: 's', ...STRAY })),
    webhooks: () => webhooks(once, any(STRAY)),
  },
  './testing': {
    crashAt: (door) => any(door.crashAt)({ point: 'p', ...STRAY }),
    crashEverywhere: (door) => any(door.crashEverywhere)({ program: 'none.ts', ...STRAY }),
    // Both take the environment, whose variables are nobody's to know.
    crashPointFromEnvironment: NO_OPTIONS,
    reportPoints: NO_OPTIONS,
    random: NO_OPTIONS,
    recordPoints: NO_OPTIONS,
    runUntilCrash: (door) => any(door.runUntilCrash)({ program: 'none.ts', point: 'p', ...STRAY }),
    startFaultProxy: (door) =>
      any(door.startFaultProxy)({ target: { host: '127.0.0.1', port: 1 }, ...STRAY }),
    // A test runner, a name and a function.
    storeConformance: NO_OPTIONS,
  },
  './express': { hearNotExecuted: NO_OPTIONS, idempotent: IDEMPOTENT, keepRawBody: NO_OPTIONS },
  './koa': { idempotent: IDEMPOTENT, keepRawBody: NO_OPTIONS },
  './node': { idempotent: IDEMPOTENT, keepRawBody: NO_OPTIONS },
  './fetch': { idempotent: IDEMPOTENT },
  './hono': { idempotent: IDEMPOTENT },
  './fastify': {
    idempotency: (door) => any(door.idempotency)({ initialConfig: {} }, { once, account, ...STRAY }),
    // Checked when a route is added, which can be named then: see fastify-own.test.ts.
    idempotent: NO_OPTIONS,
  },
  './nest': {
    // Checked when the application starts, where the handler can be named: see nest-start.test.ts.
    Idempotent: NO_OPTIONS,
    Idempotency: NO_OPTIONS,
    Tx: NO_OPTIONS,
    OnlyonceModule: (door) => any(door.OnlyonceModule).forRoot({ once, account, ...STRAY }),
    keepRawBody: NO_OPTIONS,
  },
}

/** What the doors give back, and what its methods are given. */
export const OBJECTS: Readonly<Record<string, readonly [object: object, methods: Table]>> = {
  once: [
    once,
    {
      transaction: () => once.transaction(any({ ...call, ...STRAY }), async () => 1),
      within: () => once.within(any(pool), any({ ...call, ...STRAY }), async () => 1),
      execute: () => once.execute(any({ ...call, ...STRAY }), async () => 1),
      run: () => {
        const { operation: _, ...named } = call
        const nothing = root.operation('nothing', async () => 1)
        return once.run(nothing, any({ ...named, input: 1, ...STRAY }))
      },
      issueKey: () => once.issueKey(any({ account: 'acme', operation: 'orders.create', ...STRAY })),
      explain: () => once.explain(any({ ...call, ...STRAY })),
      stuck: () => once.stuck(any(STRAY)),
      start: NO_OPTIONS,
      close: () => once.close(any(STRAY)),
    },
  ],
  operator: [
    operator(once),
    {
      list: () => operator(once).list(any(STRAY)),
      show: () => operator(once).show(call, any(STRAY)),
      resolve: () => operator(once).resolve(call, any({ ...signature, allowRetry: true, ...STRAY })),
      discardResult: () =>
        operator(once).discardResult(call, any({ ...signature, step: 'charged', ...STRAY })),
      giveUp: () => operator(once).giveUp(call, any({ ...signature, reply: { status: 409 }, ...STRAY })),
      park: () => operator(once).park(call, any({ ...signature, ...STRAY })),
      unpark: () => operator(once).unpark(call, any({ ...signature, ...STRAY })),
    },
  ],
  locks: [
    locks(once),
    {
      acquire: () => locks(once).acquire('ledger', any({ account: 'acme', ttlMs: 1_000, ...STRAY })),
    },
  ],
  outbox: [
    outbox(once),
    {
      emit: () => outbox(once).emit(pool as never, any({ account: 'acme', type: 'a', ...STRAY })),
      stage: () => outbox(once).stage(pool as never, any({ account: 'acme', job: 'a', ...STRAY })),
      lag: NO_OPTIONS,
      parked: () => outbox(once).parked(any(STRAY)),
      // The name of something: what parked() gave may be passed.
      retryParked: NO_OPTIONS,
      forget: NO_OPTIONS,
    },
  ],
  inbox: [
    inbox(once),
    {
      once: () =>
        inbox(once).once(
          pool as never,
          any({ account: 'acme', source: 's', messageId: 'm', ...STRAY }),
          async () => 1,
        ),
    },
  ],
  webhooks: [
    hooks,
    {
      deliverer: NO_OPTIONS,
      replay: () => hooks.replay(any({ account: 'acme', endpoint: 'we_1', message: 'evt_1', ...STRAY })),
    },
  ],
  endpoints: [
    hooks.endpoints,
    {
      create: () => hooks.endpoints.create(any({ account: 'acme', url: 'https://shop.example', ...STRAY })),
      list: () => hooks.endpoints.list(any({ account: 'acme', ...STRAY })),
      update: () => hooks.endpoints.update(any({ ...id, ...STRAY })),
      rotateSecret: () => hooks.endpoints.rotateSecret(any({ ...id, ...STRAY })),
      // The names of something: an endpoint as it was listed may be passed.
      get: NO_OPTIONS,
      enable: NO_OPTIONS,
      disable: NO_OPTIONS,
      remove: NO_OPTIONS,
    },
  ],
  messages: [
    hooks.messages,
    {
      list: () => hooks.messages.list(any({ account: 'acme', ...STRAY })),
      get: () => hooks.messages.get(any({ ...id, ...STRAY })),
    },
  ],
  deliveries: [
    hooks.deliveries,
    {
      list: () => hooks.deliveries.list(any({ account: 'acme', ...STRAY })),
      // The name of something: a delivery as it was listed may be passed.
      attempts: NO_OPTIONS,
    },
  ],
}

/** Options inside options. */
export const NESTED: Readonly<Record<string, () => unknown>> = {
  'keys of onlyonce()': () => root.onlyonce({ store: memory(), secret, keys: any(STRAY) }),
  'a destination of relay()': () =>
    relay(once, { destinations: { billing: any({ publisher: async () => {}, ...STRAY }) } }),
  'completer of startWorkers()': () => startWorkers(once, { completer: any(STRAY) }),
  'recoverer of startWorkers()': () => startWorkers(once, { recoverer: any(STRAY) }),
  'reconciler of startWorkers()': () => startWorkers(once, { reconciler: any(STRAY) }),
  'relay of startWorkers()': () => startWorkers(once, { relay: any(STRAY) }),
  'the reply of operator.resolve()': async () => {
    const { replyOf } = await import('../../src/protect/given-reply.ts')
    return replyOf(any({ status: 201, ...STRAY }))
  },
}
