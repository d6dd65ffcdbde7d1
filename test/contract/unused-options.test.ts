import { fastify } from 'fastify'
import { describe, expect, test } from 'vitest'
import { idempotent as forExpress } from '../../src/http/adapters/express/index.ts'
import { idempotency, idempotent } from '../../src/http/adapters/fastify/index.ts'
import { idempotent as forFetch } from '../../src/http/adapters/fetch/index.ts'
import { idempotent as forHono } from '../../src/http/adapters/hono/index.ts'
import { onlyonce, operation, reply } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { catchError, makeCall, SECRET } from './shop.ts'

const account = () => 'acct_1'

function open() {
  const once = onlyonce({ store: memory(), secret: SECRET, background: false })
  cleanUpLater(() => once.close())
  return once
}

type Door = ReturnType<typeof open>
const pay = operation('payments.create', async () => reply(201, {}))
const { operation: _, ...named } = makeCall()
const work = async () => 1
const within = { query: async () => ({ rows: [] }) }

const CALLS: Readonly<Record<string, [string, (once: Door) => Promise<unknown>]>> = {
  'exclusive of a handler': [
    'once.execute(): exclusive concerns transactions',
    (once) => once.execute({ ...makeCall(), exclusive: true } as never, work),
  ],
  'leaseMs of a transaction': [
    'once.transaction(): leaseMs concerns handlers and durable operations',
    (once) => once.transaction({ ...makeCall(), leaseMs: 1 } as never, work),
  ],
  'isolation of work within a transaction': [
    'once.within(): isolation concerns transactions',
    (once) => once.within(within, { ...makeCall(), isolation: 'serializable' } as never, work),
  ],
  'rerunnable of an operation': [
    'once.run(): rerunnable concerns handlers',
    (once) => once.run(pay, { ...named, rerunnable: true } as never),
  ],
  'a name that no option has': [
    'once.execute() has no option exclusiv. ',
    (once) => once.execute({ ...makeCall(), exclusiv: true } as never, work),
  ],
}

describe('an option that a call from code makes no use of is refused', () => {
  test.each(Object.entries(CALLS))('%s', async (_name, [detail, call]) => {
    const error = await catchError(call(open()))
    expect(error).toMatchObject({ code: 'option_invalid', message: expect.stringContaining(detail) })
  })
})

describe('an option that a route makes no use of', () => {
  const wrong = { account, operation: 'orders.create', exclusive: true } as const
  const LAYERS: Readonly<Record<string, (once: Door) => unknown>> = {
    Express: (once) => forExpress(once, wrong),
    Hono: (once) => forHono(once, wrong),
    fetch: (once) => forFetch(once, wrong, () => new Response()),
  }
  test.each(Object.entries(LAYERS))(
    'is refused by the layer of %s, which has one protection',
    (_name, make) => {
      expect(() => make(open())).toThrow('orders.create: exclusive concerns transactions')
    },
  )

  test('is refused by a route of Fastify, and taken as a default of its plugin', async () => {
    const app = fastify()
    cleanUpLater(() => app.close())
    await app.register(idempotency, { once: open(), account, exclusive: true, leaseMs: 5_000 })
    const handle = async () => ({})
    app.post('/handled', { preHandler: idempotent() }, handle)
    app.post('/transacted', { preHandler: idempotent({ protect: 'transaction' }) }, handle)
    const late = () =>
      app.post('/late', { preHandler: idempotent({ protect: 'transaction', leaseMs: 1_000 }) }, handle)
    expect(late).toThrow('POST /late: leaseMs concerns handlers and durable operations')
  })
})
