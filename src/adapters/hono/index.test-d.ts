import { Hono } from 'hono'
import { describe, expectTypeOf, it } from 'vitest'
import { onlyonce, type PostgresTx, postgres } from '../../index.ts'
import { idempotent, type OnceContext, type OnceVariables } from './index.ts'

const once = onlyonce({ store: postgres({ connection_string: '' }), secret: '' })
type Once = OnceContext<PostgresTx> | undefined

describe('the middleware for Hono', () => {
  it('tells the handlers behind it of its variable, beside those of the application', () => {
    const app = new Hono<{ Variables: { user: { account: string } } }>()
    app.post('/orders/:id', idempotent(once, { account: () => 'acct_1' }), (c) => {
      expectTypeOf(c.get('once')).toEqualTypeOf<Once>()
      expectTypeOf(c.var.once).toEqualTypeOf<Once>()
      expectTypeOf(c.get('user')).toEqualTypeOf<{ account: string }>()
      expectTypeOf(c.req.param('id')).toEqualTypeOf<string>()
      return c.json({})
    })
  })

  it('goes before all routes of an application that knows the variable', () => {
    const app = new Hono<{ Variables: OnceVariables<PostgresTx> }>()
    app.use(idempotent(once, { account: () => 'acct_1' }))
    app.post('/orders', (c) => {
      expectTypeOf(c.var.once).toEqualTypeOf<Once>()
      return c.json({})
    })
  })

  it('asks for the account with the context of the application', () => {
    type AppEnv = { Variables: { user: { account: string } } }
    idempotent<PostgresTx, AppEnv>(once, { account: (c) => c.get('user').account })
    idempotent(once, { account: async (c) => c.req.header('x-account') })
    // @ts-expect-error whose request is it?
    idempotent(once, {})
  })
})
