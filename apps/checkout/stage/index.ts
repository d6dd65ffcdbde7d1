/** The checkout: a page to try payments with, and what goes wrong on purpose. It is served in development alone. */
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Type } from 'typebox'
import { DEMO_ACCOUNT_ID, DEMO_API_KEY } from '../../payments/accounts/index.ts'
import type { Api, Routes } from '../../payments/api/index.ts'
import { Refused } from '../../payments/problems.ts'
import { isLoopback } from '../../payments/production.ts'
import { booksOf } from './books.ts'
import { PAGE_POLICY, type PageFile, readPage } from './page.ts'
import { STAGE_FAULTS, Stage } from './stage.ts'

const LINE = '/checkout/line'
const ACCOUNT = `${DEMO_ACCOUNT_ID}:test`
const KEYS_MAX = 20

export const checkoutRoutes: Routes = async (app, { config }) => {
  // A mistake in the configuration must not be enough to kill servers by request.
  if (!config.checkout || config.production !== null) throw new Error('The checkout is for development.')
  const { folder } = config
  const stage = new Stage({
    folder,
    gatewayFolder: join(folder, 'gateway'),
    ownUrl: () => urlOf(app.server.address() as AddressInfo),
  })
  app.addHook('preClose', () => stage.close())
  app.addHook('onRequest', (request, reply, done) => {
    // A page of another site may have its own name point here. Its name is in the Host header.
    if (!isLoopback(request.hostname)) throw new Refused('not_found')
    reply.headers(PAGE_HEADERS)
    done()
  })
  addPage(app)

  app.post(
    '/checkout/fault',
    {
      schema: {
        hide: true,
        body: Type.Object({ fault: Type.Enum([...STAGE_FAULTS]) }, { additionalProperties: false }),
      },
    },
    async (request) => {
      await stage.arm(request.body.fault)
      return { fault: request.body.fault }
    },
  )

  app.get(
    '/checkout/books',
    {
      schema: {
        hide: true,
        querystring: Type.Object(
          { keys: Type.String({ maxLength: 5_000 }) },
          { additionalProperties: false },
        ),
      },
    },
    async (request) => {
      const keys = request.query.keys.split(',').slice(0, KEYS_MAX)
      return await booksOf(await stage.processor(), ACCOUNT, keys)
    },
  )

  // Before the body is read: what the page sends is passed on as it came.
  app.route({
    method: ['GET', 'POST'],
    url: `${LINE}/*`,
    schema: { hide: true },
    onRequest: (request, reply) => {
      reply.hijack()
      stage.carry(request.raw, reply.raw, request.url.slice(LINE.length))
    },
    handler: async () => {},
  })
}

const PAGE_HEADERS = {
  'content-security-policy': PAGE_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
}

function addPage(app: Api): void {
  let page: Promise<Readonly<Record<string, PageFile>>> | null = null
  for (const path of ['/', '/checkout/style.css', '/checkout/icon.svg', '/checkout/app.js']) {
    app.get(path, { schema: { hide: true } }, async (_, reply) => {
      page ??= readPage(DEMO_API_KEY)
      const { type, text } = (await page)[path]!
      return reply.type(type).send(text)
    })
  }
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
