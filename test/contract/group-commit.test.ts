import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Onlyonce, onlyonce } from '../../src/index.ts'
import { type PostgresTx, postgres } from '../../src/store/postgres/index.ts'
import { completeMany, setGroupBounds } from '../../src/store/postgres/sql/group.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import {
  beginOutside,
  leaveEffect,
  makeBarrier,
  makeCall,
  makeGate,
  openProxy,
  openShop,
  POOLERS,
  SECRET,
  type Shop,
  settleWithin,
  waitUntil,
} from './shop.ts'

const CALLERS = 40
const SOON_MS = 20_000
let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

/** How many transactions have written these records as they are now. */
async function countCommits(calls: readonly { key: string }[]): Promise<number> {
  const { rows } = await shop.observer.query(
    'SELECT count(DISTINCT xmin::text)::int AS n, count(*)::int AS rows FROM onlyonce.records WHERE key = ANY ($1)',
    [calls.map(({ key }) => key)],
  )
  expect(rows[0].rows).toBe(calls.length)
  return rows[0].n
}

function handleAll(once: Onlyonce<PostgresTx>, calls: readonly ReturnType<typeof makeCall>[]) {
  return Promise.all(calls.map((call) => once.execute(call, async () => call.key)))
}

const manyCalls = (count = CALLERS) => Array.from({ length: count }, () => makeCall())

describe.each(POOLERS)('what many callers write at once, with pooler %s', (pooler) => {
  test('is few commits, and each is told of its own', async () => {
    const once = shop.open({ store: { pooler } })
    await once.start()
    const calls = manyCalls()
    const everybodyIsAtWork = makeBarrier(CALLERS)
    let arrived = 0
    let claims = 0
    const results = await Promise.all(
      calls.map((call, i) =>
        once.execute(call, async () => {
          arrived += 1
          if (i === 0) {
            await waitUntil('all are claimed', () => arrived === CALLERS)
            claims = await countCommits(calls)
          }
          await everybodyIsAtWork()
          return call.key
        }),
      ),
    )
    expect(results).toEqual(calls.map(({ key }) => ({ outcome: 'executed', value: key })))
    expect(claims).toBe(1)
    expect(await countCommits(calls)).toBe(1)
    expect(await handleAll(once, calls)).toEqual(
      calls.map(({ key }) => ({ outcome: 'replayed', value: key })),
    )
  })

  test('waits for nobody but its own: a key that another transaction holds', async () => {
    // Longer than anything here takes: whoever waits for the key waits until it is free. And a connection for
    // each: who would wait on the last one of a pool is told "in progress" at once.
    const once = shop.open({
      store: { pooler, lockWaitMaxMs: 9_000 },
      poolOptions: { max: CALLERS + 2 },
    })
    const held = makeCall()
    const holder = await beginOutside(shop)
    expect((await shop.open().within(holder, held, async () => 'held')).outcome).toBe('executed')
    const ends: string[] = []
    const blocked = once.execute(held, async () => 'twice').then((result) => ends.push(result.outcome))
    await settleWithin(SOON_MS, handleAll(once, manyCalls()))
    ends.push('the others')
    await holder.query('COMMIT')
    await blocked
    expect(ends).toEqual(['the others', 'replayed'])
    expect(await once.execute(held, async () => 'twice')).toEqual({ outcome: 'replayed', value: 'held' })
  })

  test('waits for nobody but its own: a record that somebody has locked', async () => {
    const once = shop.open({ store: { pooler } })
    const calls = manyCalls()
    const locked = calls[7]!
    const holder = await beginOutside(shop)
    const everybodyIsAtWork = makeBarrier(CALLERS)
    const ends: string[] = []
    const all = calls.map((call) =>
      once
        .execute(call, async () => {
          if (call === locked) {
            await holder.query('SELECT 1 FROM onlyonce.records WHERE key = $1 FOR UPDATE', [locked.key])
          }
          await everybodyIsAtWork()
          return 'done'
        })
        .then(({ outcome }) => {
          expect(outcome).toBe('executed')
          ends.push(call === locked ? 'the locked one' : 'another')
        }),
    )
    await waitUntil('all others are done', () => ends.length === CALLERS - 1)
    expect(ends).not.toContain('the locked one')
    await holder.query('COMMIT')
    await settleWithin(SOON_MS, Promise.all(all))
    expect(ends.at(-1)).toBe('the locked one')
  })

  test('has one owner where two doors claim the same keys through one store', async () => {
    const pool = shop.database.pool({ max: 4 })
    const store = postgres({ pool, pooler })
    const [one, other] = [onlyonce({ store, secret: SECRET }), onlyonce({ store, secret: SECRET })]
    const calls = manyCalls()
    const run = (once: Onlyonce<PostgresTx>) =>
      Promise.all(
        calls.map((call) =>
          once.execute(call, async () => {
            await leaveEffect(shop.observer, call.key)
          }),
        ),
      )
    const [ones, others] = await Promise.all([run(one), run(other)])
    for (const [i, { key }] of calls.entries()) {
      expect([ones[i]!.outcome, others[i]!.outcome]).toContain('executed')
      expect(await shop.countEffects(key)).toBe(1)
    }
  })

  test('fails for the one whose write the database refuses, and for nobody else', async () => {
    const store = postgres({ pool: shop.database.pool({ max: 4 }), pooler })
    const owned = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const id = { account: 'a', operation: 'o', key: randomUUID() }
        const fingerprint = { keyId: 'k', digest: Buffer.alloc(32) }
        const attempt = { attemptId: randomUUID(), owner: 'test', fingerprint, trace: null }
        const claimant = { kind: 'handler', ...attempt } as const
        const claim = { id, claimant, matches: () => true, leaseMs: 60_000, takeover: 'doubt' as const }
        expect((await store.claim(claim)).kind).toBe('run')
        return { id, fence: 1, attemptId: claimant.attemptId }
      }),
    )
    const ends = await Promise.allSettled(
      owned.map((one, i) => {
        const status = i === 3 ? 99_999 : 200
        return store.complete(one, { status, headers: [], body: null, schema: 1, sealedBy: null }, 1_000)
      }),
    )
    expect(ends.map(({ status }) => status)).toEqual(
      owned.map((_, i) => (i === 3 ? 'rejected' : 'fulfilled')),
    )
    expect(ends[3]).toMatchObject({ reason: { code: '22003' } })
  })

  test('keeps old owners out of it, each by its fence', async () => {
    const [once, other] = [shop.open({ store: { pooler } }), shop.open()]
    const calls = manyCalls(10).map((call) => ({ ...call, rerunnable: true, leaseMs: 60_000 }))
    const stolen = calls.slice(0, 3)
    const newcomers: Promise<unknown>[] = []
    let letNewOnesEnd = () => {}
    const oldOnesAreDone = new Promise<void>((resolve) => {
      letNewOnesEnd = resolve
    })
    const everybodyIsAtWork = makeBarrier(calls.length)
    const ends = await Promise.allSettled(
      calls.map((call) =>
        once.execute(call, async () => {
          if (stolen.includes(call)) {
            // What a lease that has run out looks like.
            await shop.observer.query(
              `UPDATE onlyonce.records SET lease_until = clock_timestamp() WHERE key = $1`,
              [call.key],
            )
            const atWork = makeGate()
            newcomers.push(
              other.execute(call, async () => {
                await atWork.pass()
                await oldOnesAreDone
                return 'new'
              }),
            )
            await atWork.reached
            atWork.open()
          }
          await everybodyIsAtWork()
          return 'old'
        }),
      ),
    )
    // The new owners are still at work: only the fence tells the old ones from them.
    letNewOnesEnd()
    for (const newcomer of newcomers) expect(await newcomer).toEqual({ outcome: 'executed', value: 'new' })
    for (const [i, end] of ends.entries()) {
      if (i < 3) expect(end).toMatchObject({ status: 'rejected', reason: { code: 'lease_lost' } })
      else expect(end).toMatchObject({ value: { outcome: 'executed', value: 'old' } })
      const value = i < 3 ? 'new' : 'old'
      expect(await other.execute(calls[i]!, async () => 'again')).toEqual({ outcome: 'replayed', value })
    }
  })

  test('runs once each when the answer to a group is lost', async () => {
    const { proxy, pool } = await openProxy(shop, { poolOptions: { max: 1 } })
    const once = shop.open({ pool, store: { pooler } })
    await once.start()
    const calls = manyCalls()
    const everybodyIsAtWork = makeBarrier(CALLERS)
    const all = calls.map((call) =>
      once.execute(call, async () => {
        await leaveEffect(shop.observer, call.key)
        await everybodyIsAtWork()
        // The next thing on the wire is the group that completes them: it is carried out, and nobody hears of it.
        proxy.setFault({ kind: 'reset', afterBytes: 1, direction: 'to_client', times: 1 })
        return call.key
      }),
    )
    const results = await settleWithin(SOON_MS, Promise.all(all))
    expect(proxy.stats.connectionsReset).toBe(1)
    expect(results).toEqual(calls.map(({ key }) => ({ outcome: 'executed', value: key })))
    for (const { key } of calls) expect(await shop.countEffects(key)).toBe(1)
  })

  test('goes on over other connections when one has fallen silent', async () => {
    const { proxy, pool } = await openProxy(shop)
    const once = shop.open({ pool, store: { pooler, statementMaxMs: 30_000 }, deadlineMs: 1_000 })
    // Opens one connection, which the first call then takes; all others come after the fault.
    await once.start()
    proxy.setFault({ kind: 'black_hole' })
    let told = false
    const late = once
      .execute(makeCall(), async () => 'late')
      .finally(() => {
        told = true
      })
    late.catch(() => {})
    await waitUntil('it has taken the connection', () => pool.idleCount === 0)
    expect(proxy.stats.connectionsBlackHoled).toBe(1)
    proxy.setFault(null)
    await settleWithin(SOON_MS, handleAll(once, manyCalls()))
    expect(told).toBe(false)
  })
})

test('a completion in a group finds each row by its key, also with a plan made when the table was empty', async () => {
  const { url } = shop.database
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  cleanUpLater(() => client.end())
  await client.query('BEGIN')
  await client.query(setGroupBounds(10))
  await client.query('SET LOCAL plan_cache_mode = force_generic_plan')
  await client.query(`PREPARE many AS ${completeMany('onlyonce')}`)
  const { rows } = await client.query(`EXPLAIN EXECUTE many (${Array(11).fill('NULL').join(', ')})`)
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
  expect(plan).toContain('Index Scan using records_pkey')
  expect(plan).not.toMatch(/Seq Scan|Hash Join|Merge Join/)
})
