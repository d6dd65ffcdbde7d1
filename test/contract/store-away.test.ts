import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { LIMITS } from '../../src/core/limits.ts'
import { logTo } from '../../src/entries/observe.ts'
import { makeRecorder } from '../setup/recorder.ts'
import {
  catchError,
  leaveEffect,
  makeCall,
  openProxy,
  openShop,
  type Shop,
  settleWithin,
  waitUntil,
} from './shop.ts'

const SOON_MS = 20_000
/** Long enough for a start on a busy machine, which has to succeed first. */
const BOUNDS = { statementMaxMs: 1_500, connectionWaitMaxMs: 1_500 }
let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

/** The lines that an operator reads, without those of `debug`. */
function makeLog() {
  const lines: Record<string, unknown>[] = []
  const at = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, ...fields, message })
  return { lines, observer: logTo({ info: at('info'), warn: at('warn'), error: at('error') }) }
}

test('a database that falls silent is one line with the reason, and one when it is back', async () => {
  const { proxy, pool, heal } = await openProxy(shop)
  const { lines, observer } = makeLog()
  const once = shop.open({ pool, store: BOUNDS, observe: observer, deadlineMs: 2_000 })
  await once.start()
  proxy.setFault({ kind: 'black_hole' })
  const calls = Array.from({ length: 6 }, () => catchError(once.transaction(makeCall(), async () => 1)))
  await settleWithin(SOON_MS, Promise.all(calls))
  expect(lines).toEqual([
    {
      level: 'error',
      signal: 'store_away',
      reason: 'silent',
      failures: 1,
      away_ms: 0,
      error_code: expect.stringMatching(/^(?:store_unavailable|pool_exhausted)$/),
      error_message: expect.any(String),
      message: 'the store cannot be used',
    },
  ])
  await heal()
  await waitUntil('it answers', async () => {
    const outcome = await once.transaction(makeCall(), (tx) => leaveEffect(tx, 'back')).catch(() => null)
    return outcome !== null
  })
  expect(lines.slice(1)).toMatchObject([{ level: 'warn', signal: 'store_back' }])
  expect(lines[1]?.failures).toBeGreaterThanOrEqual(6)
})

test('a server that accepts connections and never answers is silent from the start', async () => {
  const { proxy, pool } = await openProxy(shop)
  proxy.setFault({ kind: 'black_hole' })
  const heard = makeRecorder()
  const once = shop.open({ pool, store: BOUNDS, observe: heard })
  const error = await settleWithin(SOON_MS, catchError(once.start()))
  // The pool is not too small: no other code holds the connection that this caller waits for.
  expect(error).toMatchObject({ code: 'store_unavailable' })
  expect(error.message).toContain('The database did not answer in time')
  expect(heard.of('store_away')).toMatchObject([{ code: 'store_unavailable', reason: 'silent' }])
})

test('the background loop finds a silent database without a request, and does not tell it again', async () => {
  const quick = LIMITS as { backgroundEveryMs: number }
  const before = quick.backgroundEveryMs
  quick.backgroundEveryMs = 20
  onTestFinished(() => {
    quick.backgroundEveryMs = before
  })
  const { proxy, pool } = await openProxy(shop)
  const [{ lines, observer }, heard] = [makeLog(), makeRecorder()]
  const once = shop.open({ pool, store: BOUNDS, observe: [observer, heard], background: true })
  await once.start()
  proxy.setFault({ kind: 'black_hole' })
  await waitUntil('several batches failed', () => heard.of('worker_failed').length >= 2)
  expect(heard.of('worker_failed').map(({ reason }) => reason)).toEqual(
    heard.of('worker_failed').map(() => 'silent'),
  )
  expect(lines.map(({ signal }) => signal)).toEqual(['store_away'])
})

test.each([
  ['refuse', /^(?:refused|reset)$/],
  ['reset', /^reset$/],
] as const)('connections that the network answers with %s have another reason', async (kind, reason) => {
  const { proxy, pool } = await openProxy(shop)
  const heard = makeRecorder()
  const once = shop.open({ pool, observe: heard, deadlineMs: 500 })
  await once.start()
  proxy.setFault({ kind: 'reset' })
  await proxy.waitFor(({ connectionsOpen }) => connectionsOpen === 0)
  proxy.setFault({ kind })
  await settleWithin(SOON_MS, catchError(once.transaction(makeCall(), async () => 1)))
  expect(heard.of('store_away')[0]?.reason).toMatch(reason)
  expect(heard.of('store_error').every((error) => error.reason !== null)).toBe(true)
})

test.each([
  ['of the store', {}],
  ['of the pool itself', { connectionTimeoutMillis: 1_000 }],
])('a pool whose connections other code holds is no silent database, by the bound %s', async (_, bound) => {
  const pool = shop.database.pool({ max: 2, ...bound })
  const heard = makeRecorder()
  const once = shop.open({ pool, store: BOUNDS, observe: heard, deadlineMs: 500 })
  await once.start()
  const held = await Promise.all([pool.connect(), pool.connect()])
  const error = await settleWithin(SOON_MS, catchError(once.transaction(makeCall(), async () => 1)))
  for (const client of held) client.release()
  expect(error).toMatchObject({ code: 'pool_exhausted' })
  expect(heard.of('store_away')).toMatchObject([{ code: 'pool_exhausted', reason: 'pool_exhausted' }])
})
