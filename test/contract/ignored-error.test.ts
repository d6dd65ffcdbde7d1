import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { type Onlyonce, operation } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { catchError, leaveEffect, makeCall, openShop, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

/** Writes, and then goes on as if nothing had happened after a statement has failed. */
async function ignoreError(tx: PostgresTx, key: string): Promise<void> {
  await leaveEffect(tx, key)
  await tx.query('SELECT 1 / 0').catch(() => {})
}

function routeOf(once: Onlyonce<PostgresTx>, name: string) {
  const heal = { isHealed: false }
  const policy = { account: () => 'acct_1', operation: name, protect: 'transaction' } as const
  const route = idempotent(once, policy, async (_, { idempotency: context }) => {
    const { tx, key } = context!
    if (heal.isHealed) await leaveEffect(tx, key)
    else await ignoreError(tx, key)
    return Response.json({}, { status: 201 })
  })
  const send = (key: string) =>
    route(new Request('http://localhost/', { method: 'POST', headers: { 'Idempotency-Key': key } }))
  return { send, heal }
}

test('a route that ignores the error of a statement is 500, and nothing was applied until it is corrected', async () => {
  const heard = makeRecorder()
  const { send, heal } = routeOf(shop.open({ observe: heard }), 'ignored.route')
  const key = randomUUID()
  for (let tries = 0; tries < 2; tries += 1) {
    const refused = await send(key)
    expect(refused.status).toBe(500)
    expect(await refused.json()).toMatchObject({
      code: 'statement_failed',
      retryable: true,
      executed: 'not_by_this_request',
    })
  }
  expect(await shop.countEffects(key)).toBe(0)
  expect(heard.of('tx_error_ignored')).toMatchObject([
    { first: true, failure: { code: '22012' } },
    { first: false, failure: { code: '22012' } },
  ])
  // The key is not lost: corrected code runs under it.
  heal.isHealed = true
  expect((await send(key)).status).toBe(201)
  expect(await shop.countEffects(key)).toBe(1)
})

test('where nobody observes, the process warns once for each operation', async () => {
  const { send } = routeOf(shop.open(), 'ignored.warned')
  const warnings: string[] = []
  const note = (warning: Error) => void warnings.push(`${warning.name}: ${warning.message}`)
  process.on('warning', note)
  await send(randomUUID())
  await send(randomUUID())
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', note)
  const told = warnings.filter((warning) => warning.startsWith('OnlyonceTransactionWarning: ignored.warned:'))
  expect(told).toEqual([expect.stringContaining('22012')])
})

test('from code the call rejects with the error that was ignored, and it is told', async () => {
  const heard = makeRecorder()
  const call = makeCall()
  const ran = shop.open({ observe: heard }).transaction(call, (tx) => ignoreError(tx, call.key))
  expect(await catchError(ran)).toMatchObject({ code: '22012' })
  expect(heard.of('tx_error_ignored')).toHaveLength(1)
  expect(await shop.countEffects(call.key)).toBe(0)
})

test('an error that a savepoint has undone is no trouble', async () => {
  const heard = makeRecorder()
  const call = makeCall()
  const ran = await shop.open({ observe: heard }).transaction(call, async (tx) => {
    await leaveEffect(tx, call.key)
    await tx.query('SAVEPOINT before')
    await tx.query('SELECT 1 / 0').catch(() => {})
    await tx.query('ROLLBACK TO SAVEPOINT before')
  })
  expect([ran.outcome, heard.of('tx_error_ignored')]).toEqual(['executed', []])
  expect(await shop.countEffects(call.key)).toBe(1)
})

test.each(['transaction', 'handler', 'within'] as const)(
  'once.%s() without a function is refused, and claims no key',
  async (name) => {
    const once = shop.open()
    const call = makeCall()
    const none = undefined as never
    const ran =
      name === 'within'
        ? once.within(shop.observer, call, none)
        : once[name === 'handler' ? 'execute' : name](call, none)
    expect(await catchError(ran)).toMatchObject({ code: 'option_invalid' })
    expect((await once.explain(call)).state).toBe('none')
  },
)

test('once.run() without an operation is refused', async () => {
  const once = shop.open()
  const { operation: _, ...call } = makeCall()
  for (const given of [
    undefined,
    async () => 1,
    { ...operation('misuse.run', async () => 1), run: undefined },
  ]) {
    const ran = once.run(given as never, { ...call, input: {} })
    expect(await catchError(ran)).toMatchObject({ code: 'option_invalid' })
  }
})
