import { Type } from 'typebox'
import type { Service } from '../service.ts'
import { requireOpsToken } from './auth.ts'
import { sendProblem } from './errors.ts'
import { API_LIMITS } from './limits.ts'
import type { Api, Routes } from './type.ts'

const Status = Type.Object({ status: Type.Literal('ok') })

/** For those who watch the process. */
export const healthRoutes: Routes = async (app: Api, service: Service) => {
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
      if (await answers(service)) return { status: 'ok' }
      return sendProblem(request, reply, 'unavailable', { detail: 'The database does not answer.' })
    },
  )
  app.get(
    '/metrics',
    { onRequest: requireOpsToken(service), schema: { summary: 'Metrics for Prometheus', tags: ['health'] } },
    async (_, reply) => reply.type(service.metrics.contentType).send(await service.metrics.metrics()),
  )
}

async function answers({ pool }: Service): Promise<boolean> {
  const query = { text: 'SELECT 1', query_timeout: API_LIMITS.ready_max_ms }
  const late = new Promise<boolean>((resolve) => setTimeout(resolve, API_LIMITS.ready_max_ms, false).unref())
  return await Promise.race([
    pool.query(query).then(
      () => true,
      () => false,
    ),
    late,
  ])
}
