import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import type { PlainCode } from '../../src/core/errors.ts'
import { ERRORS } from '../../src/entries/errors.ts'
import { type ErrorCode, notExecuted, OnlyonceError, onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { completer, reconciler } from '../../src/workers/index.ts'
import { openShop, SECRET, type Shop, waitUntil } from '../contract/shop.ts'
import { POOLER } from '../setup/pooler.ts'
import { ALL_OPERATIONS, type Journal, LEASE_MS, type Life, live, type Strike } from './lives.ts'
import { MOMENTS, type Moment } from './moments.ts'

const AT_ONCE = 12
/** There are thousands of records, and the machine has other work. */
const FINISH_MAX_MS = 300_000

/** Every error of the table, and what drivers and code throw beside them. */
const STRIKES: readonly Strike[] = [
  ...(Object.keys(ERRORS) as ErrorCode[]).map((name) => ({
    name,
    make: () => (name === 'not_executed' ? notExecuted() : new OnlyonceError(name as PlainCode)),
  })),
  ...['53100', '57014', '40001', '08006'].map((code) => ({
    name: `SQLSTATE ${code}`,
    make: () => Object.assign(new Error(TEXT), { code, severity: 'ERROR' }),
  })),
  { name: 'socket', make: () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }) },
  { name: 'program', make: () => new TypeError('x is not a function') },
]

const TEXT = 'relation "cards" page 12'
const LEAK = /cards|page 12|ECONNRESET|not a function/

/** What a store, or its driver, throws. */
const OF_THE_STORE = [
  'store_unavailable',
  'pool_exhausted',
  'overloaded',
  'deadline_exceeded',
  'transaction_idle',
  'serialization_failed',
  'SQLSTATE 53100',
  'SQLSTATE 57014',
  'SQLSTATE 40001',
  'SQLSTATE 08006',
  'socket',
]

/** Those that may last: a store that is away stays away for a while. */
const LASTING = ['store_unavailable', 'pool_exhausted', 'serialization_failed', 'SQLSTATE 53100', 'socket']

/** The author says of work that did something that it did nothing: that is the author's own false word. */
const isALie = ({ strikes, protection }: Moment, { name }: Strike) =>
  name === 'not_executed' &&
  'work' in strikes &&
  (strikes.work === 'call_throws_last' || (protection === 'handler' && strikes.work === 'throws_last'))

/** What a store throws that got no answer. With any other error it says that it has not done what it was asked. */
const UNANSWERED = [
  'store_unavailable',
  'outcome_unknown',
  'lease_lost',
  'SQLSTATE 08006',
  'socket',
  'program',
]
const isImpossible = ({ strikes }: Moment, { name }: Strike) =>
  'when' in strikes &&
  strikes.when === 'after' &&
  !ANSWERS.includes(strikes.method) &&
  !UNANSWERED.includes(name)
/** They change nothing: what they throw afterwards is what they might have thrown before. */
const ANSWERS = ['look', 'operations.evidence']

let shop: Shop
let lives: Life[]
const journal: Journal = new Map()

beforeAll(async () => {
  shop = await openShop()
  const store = postgres({ pool: shop.database.pool({ max: AT_ONCE + 4 }), pooler: POOLER })
  const waiting = MOMENTS.flatMap((moment) =>
    STRIKES.filter((strike) => !isALie(moment, strike) && !isImpossible(moment, strike)).map((strike) => ({
      moment,
      strike,
    })),
  )
  const lasting = waiting.filter(
    ({ moment, strike }) => 'method' in moment.strikes && LASTING.includes(strike.name),
  )
  lives = []
  const lane = async () => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      lives.push(await live(store, journal, next.moment, next.strike, 1))
    }
  }
  const longLived = lasting.map(async ({ moment, strike }) => {
    lives.push(await live(store, journal, moment, strike, Number.POSITIVE_INFINITY))
  })
  await Promise.all([...Array.from({ length: AT_ONCE }, lane), ...longLived])
  await finishAll()
}, 900_000)

/** What can still happen without the client happens now: whatever was told has to be true afterwards too. */
async function finishAll(): Promise<void> {
  const once = onlyonce({
    store: postgres({ pool: shop.database.pool({ max: 8 }), pooler: POOLER }),
    secret: SECRET,
    operations: ALL_OPERATIONS,
    reconcileAfterMs: [1, 1, 1],
  })
  const left = `SELECT count(*)::int AS count FROM onlyonce.records
    WHERE operation = ANY($1) AND state IN ('in_progress', 'unknown')`
  const names = ALL_OPERATIONS.map(({ name }) => name)
  await waitUntil(
    'nothing is under way any more',
    async () => {
      await completer(once, { graceMs: 1, leaseMs: LEASE_MS }).runOnce()
      await reconciler(once, { leaseMs: LEASE_MS }).runOnce()
      return (await shop.observer.query(left, [names])).rows[0].count === 0
    },
    FINISH_MAX_MS,
  )
  await once.close({ maxMs: 1_000 })
}

async function effectsByKey(): Promise<Map<string, number>> {
  const { rows } = await shop.observer.query('SELECT note, count(*)::int AS count FROM effects GROUP BY note')
  const effects = new Map<string, number>(rows.map(({ note, count }) => [note, count]))
  for (const [key, count] of journal) effects.set(key, (effects.get(key) ?? 0) + count)
  return effects
}

/** What is said in docs/reference/errors.md of a store that fails. */
function documented(protection: string): readonly string[] {
  const docs = readFileSync(new URL('../../docs/reference/errors.md', import.meta.url), 'utf8')
  const row = docs.split('\n').find((line) => line.startsWith(`| ${protection} |`))
  return [...(row ?? '').matchAll(/`(\w+)`/g)].map(([, code]) => code!).sort()
}

const titleOf = ({ moment, strike, told }: Life) =>
  `${moment.name}, ${strike}: told ${told.code} ${told.executed}`

/** By moment, with one of them each: a fault in one place makes a hundred. */
function summed(found: readonly Life[]): Record<string, string> {
  const counts = new Map<string, number>()
  for (const { moment } of found) counts.set(moment.name, (counts.get(moment.name) ?? 0) + 1)
  const example = (name: string) => titleOf(found.find(({ moment }) => moment.name === name)!)
  return Object.fromEntries([...counts].map(([name, count]) => [name, `${count}, such as ${example(name)}`]))
}

describe('every error at every moment', () => {
  test('is told by a code of the table, or is what the work has thrown or replied', () => {
    const known = new Set<string>([...Object.keys(ERRORS), 'thrown', 'http_201'])
    expect(lives.filter(({ told }) => !known.has(told.code)).map(titleOf)).toEqual([])
    for (const { told } of lives) {
      if (told.code in ERRORS && told.executed !== 'not_by_this_request') {
        expect(told.executed, told.code).toBe(ERRORS[told.code as ErrorCode].executed)
      }
    }
  })

  test('never says of a key that did something that nothing was executed', async () => {
    const effects = await effectsByKey()
    // A row, and for operations a charge.
    const earlier = ({ moment: { given, protection } }: Life) =>
      given !== 'executed_before' ? 0 : protection === 'operation' ? 2 : 1
    const falseOnes = lives.filter((life) => {
      const done = effects.get(life.key) ?? 0
      if (life.told.executed === 'no') return done > 0
      if (life.told.executed === 'not_by_this_request') return done > earlier(life)
      // What a store or the work itself throws under this code is its own word.
      return life.told.executed === 'yes' && done === 0 && life.strike !== life.told.code
    })
    expect(summed(falseOnes)).toEqual({})
  })

  test('is told without a word of a driver', () => {
    expect(lives.filter(({ told }) => LEAK.test(told.text)).map(titleOf)).toEqual([])
  })

  test.each(['transaction', 'handler', 'operation'] as const)(
    'of the store, in a %s, is told by the codes that docs/reference/errors.md has for it',
    (protection) => {
      const told = lives
        .filter(({ moment, strike }) => moment.protection === protection && OF_THE_STORE.includes(strike))
        .filter(({ moment }) => 'method' in moment.strikes)
        .map((life) => life.told.code)
        .filter((code) => code in ERRORS)
      expect([...new Set(told)].sort()).toEqual(documented(protection))
    },
  )

  test('says it where it is proved: not everything is in doubt', () => {
    const said = (executed: string) => lives.filter(({ told }) => told.executed === executed).length
    expect(said('no')).toBeGreaterThan(3)
    expect(said('not_by_this_request')).toBeGreaterThan(100)
    expect(said('unknown')).toBeGreaterThan(100)
  })
})
