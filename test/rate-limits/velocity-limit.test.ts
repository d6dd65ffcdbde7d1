import { beforeAll, describe, expect, it } from 'vitest'
import { type Rule, velocityLimit } from '../../src/rate-limits/index.ts'
import { Windows } from '../../src/rate-limits/windows.ts'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import { waitUntil } from '../setup/wait.ts'

const SECRET = 'the-secret-of-the-tests-of-limits-0123456789'
const MINUTE = 60_000
const DAY = 86_400_000
let pools: readonly ReturnType<FreshDatabase['pool']>[]
beforeAll(async () => {
  const database = await freshDatabase()
  pools = [database.pool({ max: 8 }), database.pool({ max: 8 })]
})

let names = 0
const both = (...rules: Rule[]) => {
  const name = `velocity_${++names}`
  return pools.map((pool) =>
    velocityLimit({ pool, name, rules, secret: SECRET, waitMaxMs: 10_000, pooler: POOLER }),
  )
}

describe('a velocity limit', () => {
  it('holds all its rules at once, and a refused try takes of none', async () => {
    const [one, two] = both({ points: 4, perMs: DAY }, { points: 3, perMs: MINUTE })
    for (const remaining of [2, 1, 0]) {
      expect(await one!.take('acct_1', 'pm_1')).toMatchObject({ allowed: true, remaining, perMs: MINUTE })
    }
    const burst = await two!.take('acct_1', 'pm_1')
    expect(burst).toMatchObject({ allowed: false, limit: 3, perMs: MINUTE })
    expect((await one!.peek('acct_1', 'pm_1')).map(({ remaining }) => remaining)).toEqual([0, 1])
  })

  it('gives back what shorter windows gave where a longer one refuses', async () => {
    const [one, two] = both({ points: 8, perMs: MINUTE }, { points: 5, perMs: DAY })
    const asked = Array.from({ length: 100 }, (_, n) => (n % 2 === 0 ? one! : two!).take('acct_1', 'pm_1'))
    const verdicts = await Promise.all(asked)
    expect(verdicts.filter(({ allowed }) => allowed)).toHaveLength(5)
    for (let tries = 0; tries < 10; tries += 1) {
      const refused = await two!.take('acct_1', 'pm_1')
      expect(refused).toMatchObject({ allowed: false, remaining: 0 })
    }
    expect((await one!.peek('acct_1', 'pm_1')).map(({ remaining }) => remaining)).toEqual([3, 0])
    await one!.forget('acct_1', 'pm_1')
    expect((await one!.take('acct_1', 'pm_1')).allowed).toBe(true)
  })

  it('takes back a try that came to nothing: once, and in every window', async () => {
    const [one, two] = both({ points: 2, perMs: MINUTE }, { points: 5, perMs: DAY })
    const left = async () => (await two!.peek('acct_1', 'pm_1')).map(({ remaining }) => remaining)
    const [tried, nothing] = [await one!.take('acct_1', 'pm_1'), await one!.take('acct_1', 'pm_1')]
    const refused = await one!.take('acct_1', 'pm_1')
    expect([tried.allowed, nothing.allowed, refused.allowed]).toEqual([true, true, false])
    await one!.giveBack(refused)
    expect(await left()).toEqual([0, 3])
    await one!.giveBack(nothing)
    await one!.giveBack(nothing)
    await one!.giveBack({ ...tried })
    expect(await left()).toEqual([1, 4])
    expect((await one!.take('acct_1', 'pm_1')).allowed).toBe(true)
  })

  it('does not block longer because of tries while it blocks', async () => {
    const [one] = both({ points: 1, perMs: 500 }, { points: 100, perMs: DAY })
    await one!.take('acct_1', 'pm_1')
    const first = await one!.take('acct_1', 'pm_1')
    const last = await one!.take('acct_1', 'pm_1')
    if (first.allowed || last.allowed) throw new Error('A second one has passed.')
    expect(last.retryAfterMs).toBeLessThanOrEqual(first.retryAfterMs)
    await waitUntil('the block ends', async () => (await one!.take('acct_1', 'pm_1')).allowed, 3_000)
    expect((await one!.peek('acct_1', 'pm_1'))[1]!.remaining).toBe(98)
  })

  it('keeps accounts and subjects apart, and no subject in plain', async () => {
    const [one] = both({ points: 1, perMs: DAY })
    const subjects = [
      ['acct_1', 'pm_card_visa'],
      ['acct_2', 'pm_card_visa'],
      ['acct_1', 'pm_card_visa '],
      ['acct_1pm', '_card_visa'],
      ['acct_1', '\ud800'.repeat(500)],
    ] as const
    for (const [account, subject] of subjects) expect((await one!.take(account, subject)).allowed).toBe(true)
    for (const [account, subject] of subjects) expect((await one!.take(account, subject)).allowed).toBe(false)
    const { rows } = await pools[0]!.query('SELECT key FROM onlyonce.velocity_limits')
    expect(rows.length).toBeGreaterThanOrEqual(subjects.length)
    expect(JSON.stringify(rows)).not.toMatch(/visa|acct_/)
  })

  it('counts anew under another secret', async () => {
    const options = { pool: pools[0]!, name: 'secret', rules: [{ points: 1, perMs: DAY }], pooler: POOLER }
    const patient = { ...options, waitMaxMs: 10_000 }
    expect((await velocityLimit({ ...patient, secret: SECRET }).take('a', 'b')).allowed).toBe(true)
    expect((await velocityLimit({ ...patient, secret: SECRET }).take('a', 'b')).allowed).toBe(false)
    expect((await velocityLimit({ ...patient, secret: `${SECRET}!` }).take('a', 'b')).allowed).toBe(true)
  })

  it.each([
    ['no rules', { rules: [] }, 'option_invalid'],
    ['two rules for one window', { rules: [rule(1), rule(2)] }, 'option_invalid'],
    ['too many rules', { rules: Array.from({ length: 9 }, (_, n) => rule(1, n + 1)) }, 'option_invalid'],
    ['a short secret', { secret: 'short' }, 'secret_invalid'],
    ['no secret', { secret: undefined }, 'secret_invalid'],
  ])('is refused where it makes no sense: %s', (_, changes, code) => {
    const options = { pool: pools[0]!, name: 'a', rules: [rule(1)], secret: SECRET, ...changes }
    const make = () => velocityLimit(options as Parameters<typeof velocityLimit>[0])
    expect(make).toThrow(expect.objectContaining({ code }))
  })
})

function openWindows(prefix: string, perMs: number): Windows {
  const place = { pool: pools[0]!, schema: 'onlyonce', table: 'velocity_limits', named: false } as const
  return new Windows({ ...place, prefix, points: 3, perMs, waitMaxMs: 10_000 })
}

it('windows that ended long ago are removed, and no others', async () => {
  await both(rule(1))[0]!.start()
  const windows = openWindows('sweep', MINUTE)
  for (const key of ['old', 'new']) await windows.take(key, 1, 1)
  await pools[0]!.query(
    `UPDATE onlyonce.velocity_limits SET expire = expire - 7200000 WHERE key = 'sweep:old'`,
  )
  await windows.clearExpired()
  const { rows } = await pools[0]!.query(`SELECT key FROM onlyonce.velocity_limits WHERE key LIKE 'sweep:%'`)
  expect(rows).toEqual([{ key: 'sweep:new' }])
})

it('a sweep goes on until nothing old is left, so that a table grows no faster than it is swept', async () => {
  await both(rule(1))[0]!.start()
  await pools[0]!.query(
    `INSERT INTO onlyonce.velocity_limits (key, expire) SELECT 'many:' || n, 1 FROM generate_series(1, 25000) AS n`,
  )
  await openWindows('many', MINUTE).clearExpired()
  const { rows } = await pools[0]!.query(`SELECT FROM onlyonce.velocity_limits WHERE key LIKE 'many:%'`)
  expect(rows).toEqual([])
})

it('points go back only to the window that they were taken of', async () => {
  await both(rule(1))[0]!.start()
  const first = await openWindows('back', MINUTE).take('a', 1, 2)
  // Of another length: on a fast machine both begin in the same millisecond.
  const windows = openWindows('back', 2 * MINUTE)
  await pools[0]!.query(`UPDATE onlyonce.velocity_limits SET expire = 1 WHERE key = 'back:a'`)
  const second = await windows.take('a', 1, 5)
  expect([first.granted, second.granted, second.leftBefore]).toEqual([2, 3, 3])
  await windows.giveBack('a', 2, first.window)
  expect((await windows.take('a', 1, 1)).granted).toBe(0)
  await windows.giveBack('a', 1, second.window)
  expect((await windows.take('a', 1, 2)).granted).toBe(1)
})

function rule(points: number, perMs = 1_000): Rule {
  return { points, perMs }
}
