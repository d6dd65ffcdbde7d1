import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { operator } from '../../src/operator/index.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { catchError, makeCall, openShop, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

const ENCRYPTION = 'a secret for replies of more than thirty-two bytes'
const charged = () => {
  throw Object.assign(new Error('the charge was made, and then the mail failed'), { code: 'EMAIL' })
}

async function listed(key: string): Promise<boolean> {
  const { items: records } = await operator(shop.open()).list({ failed: true, limit: 500 })
  return records.some((record) => record.key === key)
}

/** One route behind HTTP, and a request to it. */
async function send(operation: string, key: string, handler: () => Response): Promise<Response> {
  const route = idempotent(shop.open(), { account: () => 'acct_1', operation }, handler)
  const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
  return await route(new Request('http://localhost/', { method: 'POST', headers, body: '{}' }))
}

describe('a handler that threw', () => {
  test('is told as one whose effect is not known, with what it threw', async () => {
    const heard = makeRecorder()
    const once = shop.open({ observe: heard })
    const call = makeCall({ operation: 'charges.create' })
    await catchError(once.execute(call, async () => charged()))
    const told = await once.explain(call)
    expect(told).toMatchObject({ state: 'completed', replyStatus: 500, settledBy: null })
    expect(told.why).toMatch(/failed: EMAIL: the charge was made/)
    expect(told.why).toContain('Whether it took effect before it failed is not known')
    expect(told.why).not.toContain('completed it')
    expect(told.attempts.at(-1)?.failure).toMatchObject({ code: 'EMAIL' })
    const { record } = await operator(once).show(call)
    expect(record).toMatchObject({ replyStatus: 500, failure: { code: 'handler_failed' } })
    expect(heard.of('handler_failed')).toMatchObject([
      { id: { key: call.key }, status: 500, failure: { code: 'EMAIL' }, fence: 1 },
    ])
  })

  test('is listed for all accounts; what succeeded is not, nor what was settled', async () => {
    const once = shop.open()
    const calls = ['acct_1', 'acct_2', 'acct_3'].map((account) => makeCall({ account }))
    const [threw, good, decided] = calls as [(typeof calls)[0], (typeof calls)[0], (typeof calls)[0]]
    await catchError(once.execute(threw, async () => charged()))
    await once.execute(good, async () => 1)
    await once.execute(decided, async () => 1)
    await shop.observer.query(
      `UPDATE onlyonce.records SET state = 'unknown', error_code = 'x', expires_at = NULL, reply_status = NULL WHERE key = $1`,
      [decided.key],
    )
    await operator(once).resolve(decided, { by: 'ann', why: 'it failed', reply: { status: 502 } })
    expect(await Promise.all(calls.map(({ key }) => listed(key)))).toEqual([true, false, false])
    const { items: records } = await operator(once).list({ failed: true, account: 'acct_1' })
    expect(new Set(records.map(({ account }) => account))).toEqual(new Set(['acct_1']))
    expect(await catchError(operator(once).list({ failed: true, states: ['completed'] }))).toMatchObject({
      code: 'option_invalid',
    })
  })

  test('behind HTTP is told from a reply of its own, and both are listed', async () => {
    const [threw, replied] = [makeCall({ operation: 'http.threw' }), makeCall({ operation: 'http.replied' })]
    await expect(send(threw.operation, threw.key, charged)).rejects.toThrow('the mail failed')
    const answer = await send(replied.operation, replied.key, () => new Response('bad', { status: 502 }))
    expect(answer.status).toBe(502)
    const once = shop.open()
    const told = await Promise.all([once.explain(threw), once.explain(replied)])
    expect(told.map(({ replyStatus }) => replyStatus)).toEqual([500, 502])
    expect(told[0]!.why).toContain('handler_failed: The function threw.')
    expect(told[1]!.why).toContain('http_502: The handler answered with the status 502, or its framework')
    for (const { why } of told) expect(why).toContain('is not known')
    expect(await Promise.all([listed(threw.key), listed(replied.key)])).toEqual([true, true])
    const again = await send(threw.operation, threw.key, charged)
    expect([again.status, again.headers.get('content-type')]).toEqual([500, 'application/problem+json'])
    expect(await again.json()).toMatchObject({ code: 'handler_failed', executed: 'unknown' })
  })

  test('and may run again is retryable, with what it did before in doubt', async () => {
    const once = shop.open()
    const call = { ...makeCall(), rerunnable: true }
    await catchError(once.execute(call, async () => charged()))
    const { account, operation, key } = call
    const told = await once.explain({ account, operation, key })
    expect(told.state).toBe('retryable')
    expect(told.why).toContain('may have had effects')
    expect(told.why).not.toMatch(/nothing happened|no effect/)
  })

  // Last: from here on a process without the key is refused at its start, and may only look.
  test('is told without the key that its reply is sealed with', async () => {
    const call = makeCall()
    await catchError(shop.open({ encryption: ENCRYPTION }).execute(call, async () => charged()))
    const told = await shop.open().explain(call)
    expect(told).toMatchObject({ state: 'completed', replyStatus: 500 })
    expect(told.why).toContain('handler_failed: The function threw.')
  })
})
