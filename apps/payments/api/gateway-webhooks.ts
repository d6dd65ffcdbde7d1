import { OnlyonceError } from 'onlyonce'
import { receiveWebhook, verifyWebhook } from 'onlyonce/webhooks'
import { Type } from 'typebox'
import { GATEWAY_EVENTS } from '../gateway-events.ts'
import type { Service } from '../service.ts'
import { API_LIMITS } from './limits.ts'
import type { Api } from './type.ts'

const EVENT_ID = /^[!-~]{1,255}$/

/**
 * What the processor tells. It is checked over its very bytes, kept, and acknowledged; a job does the rest. Nobody who cannot sign
 * is heard, so no API key is asked for.
 */
export async function gatewayWebhookRoutes(app: Api, service: Service): Promise<void> {
  const { webhookSecrets: secrets, once, strangers } = service
  if (secrets.length === 0) return
  app.removeAllContentTypeParsers()
  const options = { parseAs: 'buffer', bodyLimit: API_LIMITS.gatewayWebhookMaxBytes } as const
  app.addContentTypeParser('*', options, (_, body, done) => done(null, body))
  app.post(
    '/webhooks/stripe',
    {
      schema: {
        summary: 'What the processor tells',
        tags: ['processor'],
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const body = request.body as Buffer | undefined
      // What is signed costs nothing: the processor sends as many as there are.
      const giveBack = strangers.take(request)
      const { id, payload } = verifyWebhook({
        scheme: 'stripe',
        headers: request.headers,
        body: body ?? Buffer.alloc(0),
        secrets,
      })
      giveBack()
      // Signed or not: what cannot be kept under its id would fail at every attempt.
      if (!EVENT_ID.test(id)) throw new OnlyonceError('webhook_payload_invalid')
      await receiveWebhook(once, { ...GATEWAY_EVENTS, id, payload })
      return reply.code(204).send()
    },
  )
}
