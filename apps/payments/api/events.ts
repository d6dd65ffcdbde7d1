import type { WebhookMessage } from 'onlyonce/webhooks'
import { Type } from 'typebox'
import { openWebhooks } from '../webhooks.ts'
import { callerOf } from './auth.ts'
import { withCursor } from './cursors.ts'
import { API_LIMITS } from './limits.ts'
import { PAGE_QUERY, pageSchema } from './pages.ts'
import { IdParams, Nullable, Timestamp } from './schemas.ts'
import { readTime, Time } from './times.ts'
import type { Routes } from './type.ts'

const Event = Type.Object({
  id: Type.String(),
  type: Type.String(),
  data: Type.Unknown({ description: 'What the event has to say.' }),
  aggregate: Nullable(Type.String({ description: 'What it happened to, such as payment:pay_….' })),
  sequence: Nullable(Type.Integer({ description: 'The how manieth event of that it is.' })),
  created_at: Timestamp,
})
const tags = ['events']

/** What happened, as it was told to webhook endpoints, or would have been. */
export const eventRoutes: Routes = async (app, service) => {
  const { messages } = openWebhooks(service)
  const { reads } = service

  app.get(
    '/v1/events',
    {
      schema: {
        summary: 'List events, the newest first',
        tags,
        querystring: Type.Object(
          {
            ...PAGE_QUERY,
            type: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
            from: Type.Optional(Time),
            to: Type.Optional(Time),
          },
          { additionalProperties: false },
        ),
        response: { 200: pageSchema(Event) },
      },
    },
    async (request) => {
      const { limit = API_LIMITS.pageDefault, cursor, type, from, to } = request.query
      const { account } = callerOf(request)
      const filter = {
        account,
        limit,
        ...(cursor !== undefined && { cursor }),
        ...(type !== undefined && { types: [type] }),
        ...(from !== undefined && { from: readTime('from', from) }),
        ...(to !== undefined && { to: readTime('to', to) }),
      }
      const list = () => reads.turn(account, () => messages.list(filter))
      const { items, cursor: next } = await withCursor(cursor, list)
      return { data: items.map(present), has_more: next !== null, next_cursor: next }
    },
  )

  app.get(
    '/v1/events/:id',
    { schema: { summary: 'Get an event', tags, params: IdParams, response: { 200: Event } } },
    async (request) => {
      const { account } = callerOf(request)
      const { id } = request.params
      return present(await reads.turn(account, () => messages.get({ account, id })))
    },
  )
}

function present({ createdAt, ...event }: WebhookMessage) {
  return { ...event, created_at: new Date(createdAt) }
}
