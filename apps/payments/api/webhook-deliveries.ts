import { idempotent } from 'onlyonce/fastify'
import { type Static, Type } from 'typebox'
import { Refused } from '../problems.ts'
import { openWebhooks } from '../webhooks.ts'
import { callerOf } from './auth.ts'
import { withCursor } from './cursors.ts'
import { API_LIMITS } from './limits.ts'
import { PAGE_QUERY, pageSchema } from './pages.ts'
import { IdParams, Nullable } from './schemas.ts'
import { readTime, Time } from './times.ts'
import type { Routes } from './type.ts'
import { Delivery, presentDelivery } from './webhook-schemas.ts'

const tags = ['webhooks']
const ReplayBody = Type.Object(
  {
    event: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
    from: Type.Optional(Time),
    to: Type.Optional(Time),
    cursor: PAGE_QUERY.cursor,
  },
  { additionalProperties: false },
)
type ReplayBody = Static<typeof ReplayBody>

/** What was sent to an endpoint, and sending it again. */
export const webhookDeliveryRoutes: Routes = async (app, service) => {
  const hooks = openWebhooks(service)

  app.get(
    '/v1/webhook-endpoints/:id/deliveries',
    {
      schema: {
        summary: 'List what was sent to a webhook endpoint, the newest first',
        tags,
        params: IdParams,
        querystring: Type.Object(PAGE_QUERY, { additionalProperties: false }),
        response: { 200: pageSchema(Delivery) },
      },
    },
    async (request) => {
      const { account } = callerOf(request)
      const { limit = API_LIMITS.pageDefault, cursor } = request.query
      const from = cursor === undefined ? {} : { cursor }
      const page = await withCursor(cursor, () =>
        service.reads.turn(account, async () => {
          const { id } = await hooks.endpoints.get({ account, id: request.params.id })
          return await hooks.deliveries.list({ account, endpoint: id, limit, ...from })
        }),
      )
      return {
        data: page.items.map(presentDelivery),
        has_more: page.cursor !== null,
        next_cursor: page.cursor,
      }
    },
  )

  app.post(
    '/v1/webhook-endpoints/:id/replay',
    {
      schema: {
        summary: 'Send events again',
        description:
          'One event, or those that the endpoint wants of a time. Go on with next_cursor, and a new key, until it is null.',
        tags,
        params: IdParams,
        body: ReplayBody,
        response: { 200: Type.Object({ count: Type.Integer(), next_cursor: Nullable(Type.String()) }) },
      },
      preHandler: [
        async ({ body }) => void readReplay(body),
        idempotent({
          operation: 'webhook_endpoints.replay',
          final: { '4xx': 'retry' },
          // Receivers know events by their ids.
          rerunnable: true,
        }),
      ],
    },
    async (request) => {
      const of = { account: callerOf(request).account, endpoint: request.params.id }
      const { cursor } = request.body
      return answer(await withCursor(cursor, () => hooks.replay({ ...of, ...readReplay(request.body) })))
    },
  )
}

/** Told before the key is claimed, so that the request can be mended. */
function readReplay({ event, from, to, cursor }: ReplayBody) {
  const ranged = from !== undefined && to !== undefined
  if ((event !== undefined) === ranged || (event !== undefined && (from ?? to ?? cursor) !== undefined)) {
    throw new Refused('invalid_request', { detail: 'Send either event, or from and to.' })
  }
  if (event !== undefined) return { message: event }
  const range = { from: readTime('from', from!), to: readTime('to', to!) }
  if (range.from > range.to) {
    throw new Refused('invalid_request', { field: 'to', detail: 'to must not be earlier than from.' })
  }
  return { ...range, cursor: cursor ?? null }
}

function answer({ count, cursor }: { readonly count: number; readonly cursor: string | null }) {
  return { count, next_cursor: cursor }
}
