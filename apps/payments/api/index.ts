/** The HTTP side of the service: one Fastify, and what holds for every request. */
import { type FastifyReply, type FastifyRequest, fastify, LogController } from 'fastify'
import { idempotency } from 'onlyonce/fastify'
import { authenticator } from '../accounts/index.ts'
import { bounded } from '../database/bounded.ts'
import type { Service } from '../service.ts'
import { callerOf, type Door, requireApiKey, requireOpsToken } from './auth.ts'
import { refuseCardNumbers } from './cards.ts'
import { closeConnectionsWhenDone } from './closing.ts'
import { answerError, codeOf, didNothing } from './errors.ts'
import { healthRoutes } from './health.ts'
import { readJsonOnly, refuseUnasked } from './json.ts'
import { keyOf, mayBeReplay, requireKey } from './key.ts'
import { API_LIMITS } from './limits.ts'
import { refuseLargeMetadata } from './metadata.ts'
import { answerUnknownRoutes } from './not-found.ts'
import { answerClientError, answerExpectations, noteRequest, refuseAmbiguous } from './not-http.ts'
import { describeRoutes } from './openapi.ts'
import { readQuery } from './query.ts'
import { requestIdOf } from './request-id.ts'
import { OTHER_ROUTES, V1_ROUTES } from './routes.ts'
import type { Api, Routes } from './type.ts'
import { whenOver } from './under-way.ts'

export type { Api, Routes } from './type.ts'

/**
 * The API, ready to listen.
 *
 * @example
 * const app = await buildApi(service)
 * await app.listen({ host: '127.0.0.1', port: 3000 })
 */
export async function buildApi(service: Service): Promise<Api> {
  const app = openFastify(service)
  const v1 = doorOfV1(service)
  answerUnknownRoutes(
    app,
    { '/v1/': v1, '/ops/': requireOpsToken(service, service.strangers) },
    service.strangers,
  )
  app.setErrorHandler((error: Error, request, reply) => {
    countRefusal(service, error)
    return answerError(error, request, reply)
  })
  closeConnectionsWhenDone(app)
  readJsonOnly(app)
  // A member that a schema has forgotten is answered all the same: schemas of replies describe, and do not cut.
  app.setSerializerCompiler(() => JSON.stringify)
  app.decorateRequest('caller', null)
  app.decorateRequest('uncounted', false)
  // With a callback, as others here that wait for nothing: each promise is a turn that every request would wait for.
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('request-id', request.id)
    noteRequest(request, reply)
    refuseAmbiguous(request)
    done()
  })
  app.addHook('onResponse', ({ is404, routeOptions }, { statusCode }, done) => {
    service.counts.responded(is404 ? null : (routeOptions.url ?? null), statusCode)
    done()
  })
  app.addHook('preValidation', readQuery)
  app.addHook('preValidation', (request, _, done) => {
    refuseUnasked(request)
    // Before schemas, whose complaints name members as the client wrote them.
    refuseCardNumbers(request.body)
    refuseLargeMetadata(request.body)
    done()
  })
  await describeRoutes(app, service.config)
  // A worker with a port is there for those who watch it.
  const listens = service.config.role !== 'worker'
  await addRoutes(app, service, listens ? OTHER_ROUTES : [healthRoutes])
  if (listens) await app.register(async (scope) => addV1(scope as Api, service, v1))
  if (service.config.checkout) await addCheckout(app, service)
  await app.ready()
  return app
}

/**
 * Also in front of paths under /v1 that do not exist: an account that asks for those is as fast as it may be, and no faster. A write with a
 * key is counted later, when it would begin: a replay counts against nothing, and is served where the rate refuses all else.
 */
function doorOfV1({ pool, limits, strangers, config }: Service): Door {
  const requireCaller = requireApiKey(authenticator(bounded(pool), { demo: config.demo }), strangers)
  return async (request, reply) => {
    limits.refuseWhenStalled()
    await requireCaller(request, reply)
    whenOver(request, reply, limits.countRequest())
    whenOver(request, reply, limits.limitAtOnce(callerOf(request)))
    request.uncounted = mayBeReplay(request)
    if (request.uncounted) whenOver(request, reply, () => endWrite(limits, request))
    if (!request.uncounted) await limits.limitRate(callerOf(request), reply)
  }
}

/** Codes of a table, so there are so many series and no more. */
function countRefusal({ counts }: Service, error: Error): void {
  counts.refused(codeOf(error))
}

/** A key that is none has taken nothing. */
function endWrite({ over }: Service['limits'], request: FastifyRequest): void {
  const key = keyOf(request)
  if (key !== null) over({ account: callerOf(request).account, key })
}

/** A write that is wrong before its key is looked up is no replay: it counts, and is told first that there are too many. */
async function countWrong({ limits }: Service, error: Error, request: FastifyRequest, reply: FastifyReply) {
  if (!request.uncounted) return error
  return await limits.limitRate(callerOf(request), reply).then(
    () => error,
    (refused: Error) => refused,
  )
}

/** An API key is asked for before anything else, and an Idempotency-Key for every write. */
async function addV1(v1: Api, service: Service, door: Door): Promise<void> {
  const { keys } = service.config
  v1.addHook('onRequest', door)
  v1.setErrorHandler(async (error: Error, request, reply) => {
    // Only the request that has claimed its key has this context: no other one's points are given back.
    if (request.idempotency !== undefined && didNothing(error))
      await service.limits.cameToNothing(request.idempotency)
    const told = await countWrong(service, error, request, reply)
    countRefusal(service, told)
    return answerError(told, request, reply)
  })
  v1.addHook('onRequest', (_, reply, done) => {
    reply.header('cache-control', 'no-store')
    done()
  })
  v1.addHook('preHandler', (request, _, done) => {
    requireKey(request, service.config.keys)
    request.uncounted = false
    done()
  })
  await v1.register(idempotency, {
    once: service.once,
    account: (request) => callerOf(request).account,
    methods: ['POST', 'PUT', 'PATCH', 'DELETE'],
    // For routes that ask nothing more: under overload no write begins, and replays are served.
    admit: (asked) => service.limits.admitWork(asked),
    leaseMs: service.config.timing.leaseMs,
    key: keys.issued === 'required' ? 'issued' : 'required',
    ...(keys.deadlineHeader !== null && { deadlineHeader: keys.deadlineHeader }),
    ...(keys.callsDeadlineMs !== null && { deadlineMs: keys.callsDeadlineMs }),
  })
  await addRoutes(v1, service, V1_ROUTES)
}

/** Loaded only where it is served: nothing of it is in a process of production. */
async function addCheckout(app: Api, service: Service): Promise<void> {
  const { checkoutRoutes } = await import('../../checkout/stage/index.ts')
  await addRoutes(app, service, [checkoutRoutes])
}

/** Each in a scope of its own: hooks of one module are not those of the others. */
async function addRoutes(app: Api, service: Service, modules: readonly Routes[]): Promise<void> {
  for (const routes of modules) await app.register(async (scope) => routes(scope as Api, service))
}

function openFastify({ log, config }: Service): Api {
  const app = fastify({
    loggerInstance: log,
    genReqId: requestIdOf,
    trustProxy: config.trustedProxies.length === 0 ? false : [...config.trustedProxies],
    logController: new LogController({ requestIdLogLabel: 'request_id' }),
    bodyLimit: API_LIMITS.bodySizeMaxBytes,
    requestTimeout: API_LIMITS.requestTimeoutMs,
    routerOptions: { maxParamLength: API_LIMITS.pathParameterLengthMax },
    // Requests that are on their way when the drain begins are answered, and their connections closed.
    return503OnClosing: false,
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false, allErrors: false } },
    clientErrorHandler: answerClientError,
    // Asked for by ourselves: Node would refuse it without a word.
    http: { requireHostHeader: false },
    frameworkErrors: (error, request, reply) => {
      reply.header('request-id', request.id)
      answerError(error, request, reply)
    },
  })
  answerExpectations(app.server)
  return app as unknown as Api
}
