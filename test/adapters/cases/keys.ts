import { expect } from 'vitest'
import { topic } from '../case.ts'
import { expectProblem, expectReplay } from '../expectations.ts'

const MALFORMED = {
  '': 'key_empty',
  'one, another-key': 'key_list',
  '"one-key-12345", "other-12345"': 'key_list',
  [`k${'x'.repeat(255)}`]: 'key_too_long',
  short: 'key_too_short',
  '"not closed 12345': 'key_malformed',
  'with a space 12345': 'key_space',
  '"with-params-1234";a=1': 'key_parameters',
  'schlüssel-12345678': 'key_not_ascii',
  '4111111111111111': 'key_card_number',
} as const

export const keys = topic('Keys', (one) => {
  one('missing where one is required is 400, and nothing runs', async (bench) => {
    const served = await bench.serve()
    expectProblem(await served.send({ key: null }), 'key_missing')
    expect(served.runs).toBe(0)
  })

  one('missing where it is optional runs unprotected', async (bench) => {
    const seen: unknown[] = []
    const served = await bench.serve({
      policy: { key: 'optional' },
      handle({ once }) {
        seen.push(once)
        return { do: 'empty', status: 204 }
      },
    })
    await served.send({ key: null })
    await served.send({ key: null })
    expect(seen).toEqual([null, null])
    const { first, again } = await served.twice()
    expectReplay(first, again)
    expect(served.runs).toBe(3)
  })

  one('that are malformed are refused by their own codes, and nothing runs', async (bench) => {
    const served = await bench.serve()
    for (const [key, code] of Object.entries(MALFORMED)) {
      // Header values are bytes: what is beyond ASCII is sent as it would be.
      expectProblem(await served.send({ key: Buffer.from(key).toString('latin1') }), code)
    }
    expect(served.runs).toBe(0)
  })

  one('sent twice are refused', async (bench) => {
    const served = await bench.serve()
    const repeated = ['first-key-12345', 'second-key-12345']
    const received = await served.send({ key: null, headers: { 'idempotency-key': repeated } })
    expect(['key_repeated', 'key_list']).toContain(received.json().code)
    expect(received.status).toBe(400)
    expect(served.runs).toBe(0)
  })

  one('quoted and bare are one key', async (bench) => {
    const served = await bench.serve()
    const key = crypto.randomUUID()
    const first = await served.send({ key })
    expectReplay(first, await served.send({ key: `"${key}"` }))
    expect(served.runs).toBe(1)
  })

  one('are read from other headers, the first that is there', async (bench) => {
    const served = await bench.serve({ policy: { header: ['PayPal-Request-Id', 'X-Idempotency-Key'] } })
    const key = crypto.randomUUID()
    const first = await served.send({ key: null, headers: { 'x-idempotency-key': key } })
    expectReplay(first, await served.send({ key: null, headers: { 'paypal-request-id': key } }))
    expectProblem(await served.send({ key }), 'key_missing')
    expect(served.runs).toBe(1)
  })

  one('where only issued ones count, others are refused', async (bench) => {
    const served = await bench.serve({ policy: { key: 'issued', operation: 'things.create' } })
    expectProblem(await served.send(), 'key_not_issued')
    const { key } = served.once.issueKey({ account: 'acct_1', operation: 'things.create' })
    const first = await served.send({ key })
    expectReplay(first, await served.send({ key }))
    expectProblem(await served.send({ key, account: 'acct_2' }), 'key_forged')
    expect(served.runs).toBe(1)
  })

  one('the handler is told whose request it is, what it does and under which key', async (bench) => {
    const seen: unknown[] = []
    const served = await bench.serve({
      policy: { operation: 'things.create' },
      handle({ once }) {
        seen.push([once!.account, once!.operation, once!.key, once!.signal.aborted])
        return { do: 'empty', status: 204 }
      },
    })
    await served.send({ key: '"the-key-12345"' })
    expect(seen).toEqual([['acct_1', 'things.create', 'the-key-12345', false]])
  })

  one('nobody is refused, and no key is claimed', async (bench) => {
    const served = await bench.serve()
    const key = crypto.randomUUID()
    expectProblem(await served.send({ key, account: null }), 'account_missing')
    expect((await served.send({ key })).status).toBe(201)
  })

  one('an account that was shut out is never given a replay', async (bench) => {
    const served = await bench.serve()
    const key = crypto.randomUUID()
    expect((await served.send({ key })).status).toBe(201)
    expectProblem(await served.send({ key, account: null }), 'account_missing')
  })

  one(
    'are told by a function of the route, from a member of the body, under the same rules',
    async (bench) => {
      const key = ({ body }: { body: unknown }) => (body as { clientToken?: string } | undefined)?.clientToken
      const served = await bench.serve({ policy: { key } })
      const body = { clientToken: 'token-of-a-client-1', amount: 5 }
      const { first, again } = await served.twice({ key: null, body })
      expectReplay(first, again)
      // What stands in the header is no key here.
      expectReplay(first, await served.send({ key: 'another-key-12345', body }))
      expectProblem(await served.send({ key: null, body: { ...body, amount: 6 } }), 'key_reused')
      expectProblem(await served.send({ key: 'a-key-in-the-header', body: { amount: 5 } }), 'key_missing')
      expectProblem(await served.send({ key: null, body: { clientToken: 'short' } }), 'key_too_short')
      expectProblem(await served.send({ key: null, body: { clientToken: 12345678901 } }), 'key_not_a_string')
      expect(served.runs).toBe(1)
    },
  )
})
