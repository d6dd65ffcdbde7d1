import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RateLimitOptions, rateLimit } from '../../src/rate-limits/index.ts'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import { waitUntil } from '../setup/wait.ts'

let database: FreshDatabase
let pools: readonly ReturnType<FreshDatabase['pool']>[]
beforeAll(async () => {
  database = await freshDatabase()
  pools = [database.pool({ max: 8 }), database.pool({ max: 8 })]
})
afterEach(() => vi.useRealTimers())

let names = 0
/** Far longer than a loaded machine keeps a request waiting: a verdict is to come from the database. */
const PATIENT = { waitMaxMs: 10_000, pooler: POOLER }

/** The same limit twice, on pools of their own, as two processes have it. */
function both(options: Omit<RateLimitOptions, 'pool' | 'name'>) {
  const name = `limit_${++names}`
  return pools.map((pool) => rateLimit({ pool, name, ...PATIENT, ...options }))
}

describe('a rate limit', () => {
  it('lets exactly its points pass, whoever asks at the same time', async () => {
    const [one, two] = both({ points: 50, perMs: 60_000 })
    const asked = Array.from({ length: 200 }, (_, n) => (n % 2 === 0 ? one! : two!).take('acct_1'))
    const verdicts = await Promise.all(asked)
    const allowed = verdicts.filter((verdict) => verdict.allowed)
    expect(allowed).toHaveLength(50)
    // Each was told another number: nobody shares a point.
    expect(allowed.map(({ remaining }) => remaining).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 50 }, (_, left) => left),
    )
    expect(await two!.take('acct_1')).toMatchObject({
      allowed: false,
      counted: true,
      limit: 50,
      remaining: 0,
    })
  })

  it('takes back the points of a request that began nothing, once', async () => {
    const [one, two] = both({ points: 2, perMs: 60_000 })
    const [began, nothing] = [await one!.take('acct_1'), await one!.take('acct_1')]
    const refused = await one!.take('acct_1')
    expect([began.allowed, nothing.allowed, refused.allowed]).toEqual([true, true, false])
    for (const verdict of [refused, nothing, nothing, { ...began }]) await one!.giveBack(verdict)
    expect((await two!.peek('acct_1')).remaining).toBe(1)
    expect((await one!.take('acct_1')).allowed).toBe(true)
  })

  it('does so also where transactions are serializable, and those of two processes collide', async () => {
    const name = `limit_${++names}`
    const told: unknown[] = []
    const onTrouble = (error: unknown) => void told.push(error)
    const limits = Array.from({ length: 3 }, () => {
      const pool = database.direct({ max: 2, options: '-c default_transaction_isolation=serializable' })
      return rateLimit({ pool, name, points: 20, perMs: 60_000, waitMaxMs: 10_000, onTrouble })
    })
    let allowed = 0
    for (let round = 0; round < 10; round += 1) {
      const verdicts = await Promise.all(limits.map((limit) => limit.take('acct_1')))
      allowed += verdicts.filter((verdict) => verdict.allowed).length
    }
    expect([allowed, told]).toEqual([20, []])
  })

  it('takes again what collided with another transaction, and tells of no trouble', async () => {
    const told: unknown[] = []
    const pool = database.direct({ max: 2, options: '-c default_transaction_isolation=serializable' })
    const limit = rateLimit({
      pool,
      name: `limit_${++names}`,
      points: 20,
      perMs: 60_000,
      waitMaxMs: 20_000,
      onTrouble: (error) => void told.push(error),
    })
    expect(await limit.take('acct_1')).toMatchObject({ remaining: 19 })
    const other = await database.direct({ max: 1 }).connect()
    try {
      // The take waits for this row. When it is written behind the take's snapshot, the take has to fail once.
      await other.query('BEGIN')
      await other.query('UPDATE onlyonce.rate_limits SET over = over')
      const taken = limit.take('acct_1')
      await waitUntil('the take waits for the row', async () => {
        const { rows } = await other.query(
          "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
        )
        return rows.length > 0
      })
      await other.query('COMMIT')
      expect(await taken).toMatchObject({ allowed: true, counted: true, remaining: 18 })
      expect(told).toEqual([])
    } finally {
      other.release()
    }
  })

  it('begins anew when its window ends, and not before', async () => {
    const [one, two] = both({ points: 3, perMs: 400 })
    for (const left of [2, 1, 0]) {
      expect(await one!.take('acct_1')).toMatchObject({ allowed: true, remaining: left })
    }
    const refused = await two!.take('acct_1')
    if (refused.allowed) throw new Error('A fourth one has passed.')
    expect(refused.retryAfterMs).toBeGreaterThan(0)
    expect(refused.retryAfterMs).toBeLessThanOrEqual(400)
    await waitUntil('the window has ended', async () => (await two!.peek('acct_1')).remaining === 3)
    await waitUntil('a take is allowed again', async () => (await two!.take('acct_1')).allowed)
    expect((await one!.peek('acct_1')).remaining).toBe(2)
  })

  it('takes nothing for a try that it refuses', async () => {
    const [one, two] = both({ points: 5, perMs: 60_000 })
    await one!.take('acct_1', 3)
    const before = await one!.peek('acct_1')
    for (let tries = 0; tries < 5; tries += 1) {
      expect((await two!.take('acct_1', 3)).allowed).toBe(false)
    }
    const after = await two!.peek('acct_1')
    expect([before.remaining, after.remaining]).toEqual([2, 2])
    expect(after.resetMs).toBeLessThanOrEqual(before.resetMs)
    expect(await one!.take('acct_1', 2)).toMatchObject({ allowed: true, remaining: 0 })
  })

  it('goes by the clock of the database, whatever that of a process says', async () => {
    const [one, two] = both({ points: 2, perMs: 60_000 })
    await one!.take('acct_1')
    vi.useFakeTimers({ toFake: ['Date'] })
    for (const day of [1, -1]) {
      vi.setSystemTime(performance.timeOrigin + day * 86_400_000)
      const { remaining, resetMs } = await two!.peek('acct_1')
      expect(remaining).toBe(1)
      expect(resetMs).toBeLessThanOrEqual(60_000)
    }
    expect((await two!.take('acct_1')).allowed).toBe(true)
    expect((await two!.take('acct_1')).allowed).toBe(false)
  })

  it('keeps accounts apart, whatever they are called', async () => {
    const [one, two] = both({ points: 1, perMs: 60_000 })
    const accounts = ['a', 'A', 'a ', "a'; --", 'ä', '\0', '\ud800', '\ud801', 'x'.repeat(10_000), '🧾']
    for (const account of accounts) expect((await one!.take(account)).allowed).toBe(true)
    for (const account of accounts) expect((await two!.take(account)).allowed).toBe(false)
    await expect(one!.take('')).rejects.toMatchObject({ code: 'option_invalid' })
  })

  it('forgets an account when it is told to', async () => {
    const [one, two] = both({ points: 1, perMs: 60_000 })
    await one!.take('acct_1')
    expect((await one!.take('acct_1')).allowed).toBe(false)
    await one!.forget('acct_1')
    expect((await one!.take('acct_1')).allowed).toBe(true)
    await two!.forget('acct_1')
    await waitUntil('the other process notices', async () => (await one!.take('acct_1')).allowed)
  })

  it('can be started by many processes at once, in a schema that is not there', async () => {
    for (const schema of ['limits_1', 'limits_2', 'limits_3']) {
      const limits = Array.from({ length: 12 }, (_, n) =>
        rateLimit({ pool: pools[n % 2]!, name: 'start', schema, points: 5, perMs: 60_000, ...PATIENT }),
      )
      await Promise.all(limits.map((limit) => limit.start()))
      const verdicts = await Promise.all(limits.map((limit) => limit.take('acct_1')))
      expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(5)
    }
  })

  it.each([
    ['no pool', { pool: undefined }],
    ['a name that no header can carry', { name: 'a b' }],
    ['a name that is too long', { name: 'a'.repeat(65) }],
    ['a schema that is none', { schema: 'a"b' }],
    ['no points', { points: 0 }],
    ['half a point', { points: 0.5 }],
    ['no time', { perMs: 0 }],
    ['a year', { perMs: 365 * 86_400_000 }],
    ['another wish for errors', { onError: 'retry' }],
    ['no time to wait', { waitMaxMs: 0 }],
  ])('is refused where it makes no sense: %s', (_, changes) => {
    const options = { pool: pools[0]!, name: 'a', points: 1, perMs: 1_000, ...changes } as RateLimitOptions
    expect(() => rateLimit(options)).toThrow(expect.objectContaining({ code: 'option_invalid' }))
  })

  it('is never asked for more than it has', async () => {
    const [one] = both({ points: 5, perMs: 60_000 })
    for (const points of [6, 0, -1, 1.5, Number.NaN]) {
      await expect(one!.take('acct_1', points)).rejects.toMatchObject({ code: 'option_invalid' })
    }
  })
})
