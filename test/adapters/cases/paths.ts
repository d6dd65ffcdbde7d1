import { expect } from 'vitest'
import { type Served, topic } from '../case.ts'
import { expectReplay } from '../expectations.ts'

export const paths = topic('Spellings of a path', (one) => {
  /** One key under other spellings: a framework may not know them, and nothing runs a second time or is replayed. */
  const runsOnce = async (served: Served, path: string, spellings: readonly string[]) => {
    const key = crypto.randomUUID()
    const before = served.runs
    const first = await served.send({ key, path })
    expect(first.status).toBe(201)
    for (const spelling of spellings) {
      const other = await served.send({ key, path: spelling })
      expect([spelling, [404, 422].includes(other.status)]).toEqual([spelling, true])
      if (other.status === 422) expect(other.json().code).toBe('key_reused')
    }
    expectReplay(first, await served.send({ key, path }))
    expect(served.runs - before).toBe(1)
  }

  one('upper case, a slash more, and what need not be encoded: one key runs once', async (bench) => {
    const served = await bench.serve({ path: '/charges' })
    await runsOnce(served, '/charges', ['/CHARGES', '/charges/', '/%63harges', '/Charges/'])
  })

  one('the same below the prefix of a sub-router, and in the prefix itself', async (bench) => {
    const served = await bench.serve({ prefix: '/v1', path: '/orders' })
    await runsOnce(served, '/v1/orders', ['/V1/orders', '/v1/orders/', '/v1/ORDERS', '/%761/orders'])
  })

  one(
    'the same for a parameter in the prefix, where another case is another tenant',
    async (bench) => {
      const served = await bench.serve({ prefix: '/t/:tenant', path: '/orders' })
      await runsOnce(served, '/t/acme/orders', ['/t/%61cme/orders', '/t/Acme/orders', '/T/acme/orders'])
    },
    ['prefix_params'],
  )

  one('the same for a parameter of the route', async (bench) => {
    const served = await bench.serve({ path: '/payments/:id/capture' })
    await runsOnce(served, '/payments/pay_1/capture', [
      '/payments/pay%5F1/capture',
      '/payments/PAY_1/capture',
    ])
  })

  one(
    'the operation is called by method and pattern, whatever the client wrote',
    async (bench) => {
      const served = await bench.serve({ path: '/payments/:id/capture' })
      const key = crypto.randomUUID()
      await served.send({ key, path: '/payments/pay_1/capture?a=1' })
      const operation = 'POST /payments/:id/capture'
      expect((await served.once.explain({ account: 'acct_1', operation, key })).state).toBe('completed')
    },
    ['route_pattern'],
  )
})
