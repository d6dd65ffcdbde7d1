import { beforeAll, describe, expect, it, type Mock, vi } from 'vitest'
import { rateLimit, velocityLimit } from '../../src/rate-limits/index.ts'
import { openProxy, openShop, type Shop } from '../contract/shop.ts'
import { POOLER } from '../setup/pooler.ts'
import { waitUntil } from '../setup/wait.ts'

const RULE = { points: 2, perMs: 60_000 }
const SECRET = 'the-secret-of-the-tests-of-limits-0123456789'
let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

describe.each(['allow', 'refuse'] as const)('a store that is away, with onError %s', (onError) => {
  const allowed = onError === 'allow'

  it('is told, decides nothing, and counts again when it is back', async () => {
    const { proxy, pool, heal } = await openProxy(shop)
    pool.on('error', () => {})
    const told: unknown[] = []
    const options = { pool, pooler: POOLER, onError, onTrouble: (error: unknown) => told.push(error) }
    const rate = rateLimit({ name: `rate_${onError}`, points: 1_000, perMs: 60_000, ...options })
    const rules = [{ points: 1_000, perMs: 60_000 }]
    const cards = velocityLimit({ name: `cards_${onError}`, rules, secret: SECRET, ...options })
    await Promise.all([rate.start(), cards.start()])
    proxy.setFault({ kind: 'reset' })
    await proxy.waitFor(({ connectionsOpen }) => connectionsOpen === 0)
    proxy.setFault({ kind: 'refuse' })
    for (const ask of [() => rate.take('a'), () => cards.take('a', 'b')]) {
      const verdict = await ask()
      expect(verdict).toMatchObject({ allowed, counted: false })
      if (!verdict.allowed) expect(verdict.retryAfterMs).toBeGreaterThan(0)
      // Left alone for a moment, and not told again.
      const known = told.length
      expect(await ask()).toMatchObject({ allowed, counted: false })
      expect(told).toHaveLength(known)
    }
    expect(told).toHaveLength(2)
    await expect(rate.peek('a')).rejects.toMatchObject({ code: 'store_unavailable' })
    heal()
    await waitUntil('it counts again', async () => (await rate.take('a')).counted)
    await waitUntil('it counts again', async () => (await cards.take('a', 'b')).counted)
  })

  it('keeps nobody waiting when it does not answer', async () => {
    const holder = await shop.database.direct({ max: 1 }).connect()
    const pool = shop.database.pool({ max: 4 })
    const name = `held_${onError}`
    const rate = rateLimit({ pool, name, ...RULE, pooler: POOLER, onError, waitMaxMs: 100 })
    await rate.start()
    await holder.query('BEGIN')
    await holder.query('LOCK TABLE onlyonce.rate_limits IN ACCESS EXCLUSIVE MODE')
    const began = performance.now()
    const verdicts = await Promise.all(Array.from({ length: 20 }, () => rate.take('a')))
    expect(performance.now() - began).toBeLessThan(5_000)
    const passed = verdicts.filter((verdict) => verdict.allowed)
    // What passes uncounted is no more than fits in a window.
    expect(passed).toHaveLength(allowed ? RULE.points : 0)
    for (const verdict of allowed ? passed : verdicts) expect(verdict.counted).toBe(false)
    await holder.query('ROLLBACK')
    holder.release()
  })
})

describe.each(['allow', 'refuse'] as const)('a row that is locked, with onError %s', (onError) => {
  it('is the trouble of its subject alone: others are counted at once', async () => {
    const pool = shop.database.direct({ max: 4, options: '-c lock_timeout=100' })
    const options = { pool, pooler: POOLER, onError, waitMaxMs: 5_000 }
    const rate = rateLimit({ name: `alone_${onError}`, ...RULE, ...options })
    const cards = velocityLimit({ name: `alone_${onError}`, rules: [RULE], secret: SECRET, ...options })
    expect([await rate.take('a'), await cards.take('a', 'card')]).toMatchObject([
      { counted: true },
      { counted: true },
    ])
    const holder = await shop.database.direct({ max: 1 }).connect()
    await holder.query('BEGIN')
    for (const table of ['rate_limits', 'velocity_limits']) {
      await holder.query(`SELECT FROM onlyonce.${table} WHERE key LIKE 'alone_${onError}/%' FOR UPDATE`)
    }
    const troubled = await Promise.all([rate.take('a'), cards.take('a', 'card')])
    for (const verdict of troubled) {
      expect(verdict).toMatchObject({ counted: false, allowed: onError === 'allow' })
    }
    expect(await rate.take('b')).toMatchObject({ counted: true, allowed: true })
    expect(await cards.take('a', 'another card')).toMatchObject({ counted: true, allowed: true })
    await holder.query('ROLLBACK')
    holder.release()
  })
})

it('a listener that throws harms no request', async () => {
  const pool = shop.database.pool({ max: 1, connectionString: 'postgres://nobody@127.0.0.1:1/none' })
  const onTrouble = () => {
    throw new Error('a bug')
  }
  const rate = rateLimit({ pool, name: 'a', ...RULE, onTrouble })
  expect(await rate.take('a')).toMatchObject({ allowed: true, counted: false })
})

it('a listener that rejects is heard, so that it does not end the process', async () => {
  const pool = shop.database.pool({ max: 1, connectionString: 'postgres://nobody@127.0.0.1:1/none' })
  const hears: Mock[] = []
  const onTrouble = () => {
    const rejected = Promise.reject(new Error('a bug'))
    hears.push(vi.spyOn(rejected, 'then') as Mock)
    return rejected
  }
  const rate = rateLimit({ pool, name: 'a', ...RULE, onTrouble })
  expect(await rate.take('a')).toMatchObject({ allowed: true, counted: false })
  expect(hears[0]).toHaveBeenCalled()
})

it('a refused velocity take that the store did not answer in time is given back', async () => {
  const pool = shop.database.pool({ max: 4 })
  const rules = [RULE, { points: 5, perMs: 120_000 }]
  const options = { pool, name: 'late', rules, secret: SECRET, pooler: POOLER } as const
  const hasty = velocityLimit({ ...options, onError: 'refuse', waitMaxMs: 300 })
  const patient = velocityLimit({ ...options, waitMaxMs: 10_000 })
  expect((await patient.take('a', 'b')).allowed).toBe(true)
  const holder = await shop.database.direct({ max: 1 }).connect()
  await holder.query('BEGIN')
  // Only the longer window: the shorter one gives its point, and then nobody answers.
  await holder.query(`SELECT FROM onlyonce.velocity_limits WHERE key LIKE 'late/120000:%' FOR UPDATE`)
  expect(await hasty.take('a', 'b')).toMatchObject({ allowed: false, counted: false })
  await holder.query('ROLLBACK')
  holder.release()
  const left = async () => (await patient.peek('a', 'b')).map(({ remaining }) => remaining)
  await waitUntil('the shorter window has its point again', async () => (await left())[0] === 1)
})

describe('a process that the store does not answer', () => {
  it('lets no more pass than is left of the window that it knows, by any rule', async () => {
    const { proxy, pool, heal } = await openProxy(shop)
    pool.on('error', () => {})
    const options = { pool, pooler: POOLER }
    const rate = rateLimit({ name: 'known', points: 5, perMs: 60_000, ...options })
    const rules = [
      { points: 100, perMs: 60_000 },
      { points: 5, perMs: 600_000 },
    ]
    const cards = velocityLimit({ name: 'known', rules, secret: SECRET, ...options })
    for (const take of [() => rate.take('a'), () => cards.take('a', 'b')]) {
      for (let n = 0; n < 3; n += 1) expect(await take()).toMatchObject({ allowed: true, counted: true })
    }
    proxy.setFault({ kind: 'reset' })
    await proxy.waitFor(({ connectionsOpen }) => connectionsOpen === 0)
    proxy.setFault({ kind: 'refuse' })
    for (const take of [() => rate.take('a'), () => cards.take('a', 'b')]) {
      const verdicts = [await take(), await take(), await take(), await take()]
      const seen = verdicts.map(({ allowed, counted, remaining }) => [allowed, counted, remaining])
      // A refusal is counted by the process itself: it says 429 and not that the limits are away.
      const refused = [false, true, 0]
      expect(seen).toEqual([[true, false, 1], [true, false, 0], refused, refused])
    }
    expect(await rate.take('another')).toMatchObject({ allowed: true, counted: false, remaining: 4 })
    heal()
  })
})
