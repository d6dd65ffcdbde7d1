import { Type } from 'typebox'
import type { Service } from '../service.ts'
import { requireOpsToken } from './auth.ts'
import { sendProblem } from './errors.ts'
import { API_LIMITS } from './limits.ts'
import type { Api, Routes } from './type.ts'

const Status = Type.Object({ status: Type.Literal('ok') })

/** For those who watch the process. */
export const healthRoutes: Routes = async (app: Api, service: Service) => {
  const isReady = readiness(service)
  app.get(
    '/healthz',
    { schema: { summary: 'Whether the process lives', tags: ['health'], response: { 200: Status } } },
    async () => ({
      status: 'ok',
    }),
  )
  app.get(
    '/readyz',
    { schema: { summary: 'Whether it can serve', tags: ['health'], response: { 200: Status } } },
    async (request, reply) => {
      if (await isReady()) return { status: 'ok' }
      return sendProblem(request, reply, 'unavailable', {
        detail: 'The database does not answer, or nothing can be written to it.',
      })
    },
  )
  app.get(
    '/metrics',
    {
      onRequest: requireOpsToken(service, service.strangers),
      schema: { summary: 'Metrics for Prometheus', tags: ['health'] },
    },
    async (_, reply) => reply.type(service.metrics.contentType).send(await service.metrics.metrics()),
  )
}

/**
 * A server that answers may be a standby, or be set to read only, after a failover; and a restore may lack a schema. Nothing is written
 * to find out.
 */
export const CAN_WRITE = `
SELECT current_setting('transaction_read_only') = 'off' AND to_regclass('payments.payments') IS NOT NULL
  AND to_regclass('onlyonce.records') IS NOT NULL AS ready`

/**
 * Whether the database answers and can be written. One look serves all who ask while it is under way and for a moment afterwards: anybody may ask, and
 * must not take a connection each. A look that is late is answered with no, and goes on without a second one beside it.
 */
export function readiness({ pool }: Pick<Service, 'pool'>): () => Promise<boolean> {
  let looking: Promise<boolean> | null = null
  let known: { readonly ready: boolean; readonly untilMs: number } | null = null
  const note = (ready: boolean) => {
    known = { ready, untilMs: performance.now() + API_LIMITS.readyKeptMs }
    return ready
  }
  const look = async () => {
    const query = { text: CAN_WRITE, query_timeout: API_LIMITS.readyMaxMs }
    const asked = pool.query(query).then(
      ({ rows }) => rows[0].ready === true,
      () => false,
    )
    void asked.then((ready) => {
      looking = null
      note(ready)
    })
    const late = new Promise<boolean>((resolve) => setTimeout(resolve, API_LIMITS.readyMaxMs, false).unref())
    return note(await Promise.race([asked, late]))
  }
  return () => {
    if (known !== null && performance.now() < known.untilMs) return Promise.resolve(known.ready)
    looking ??= look()
    return looking
  }
}
