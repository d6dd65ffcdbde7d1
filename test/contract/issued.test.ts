import { beforeAll, describe, expect, test } from 'vitest'
import { LIMITS } from '../../src/entries/limits.ts'
import type { Onlyonce, Result, Secret } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import {
  beginCaller,
  type Call,
  catchError,
  leaveEffect,
  makeCall,
  makeGate,
  type OpenOptions,
  openShop,
  POOLERS,
  type Shop,
  settleWithin,
} from './shop.ts'

const A = 'secret-a-0123456789-0123456789-0123456789'
const B = 'secret-b-0123456789-0123456789-0123456789'
const REQUIRED = { issued: 'required' } as const
const NOW = 1_800_000_000_000
const JUST_MS = LIMITS.issuedKeyLifetimeMs + LIMITS.issuedKeySkewMs + 1
const LONG_MS = LIMITS.issuedKeyLifetimeMs + 3_600_000

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

type Once = Onlyonce<PostgresTx>
type Run = (once: Once, call: Call, work?: () => Promise<unknown>, at?: Shop) => Promise<Result<unknown>>

/** Each kind of protection, with work that leaves an effect. */
const KINDS: readonly (readonly [name: string, run: Run])[] = [
  [
    'transaction',
    (once, call, work) =>
      once.transaction(call, async (tx) => {
        await leaveEffect(tx, call.key)
        return await work?.()
      }),
  ],
  [
    'handler',
    (once, call, work, at = shop) =>
      once.execute(call, async () => {
        await leaveEffect(at.observer, call.key)
        return await work?.()
      }),
  ],
  [
    'within',
    async (once, call, work, at = shop) => {
      const client = await beginCaller(at)
      try {
        return await once.within(client, call, async (tx) => {
          await leaveEffect(tx, call.key)
          return await work?.()
        })
      } finally {
        // The caller's transaction is whole whatever was refused in it.
        expect((await client.query('COMMIT')).command).toBe('COMMIT')
      }
    },
  ],
]

const CASES = POOLERS.flatMap((pooler) => KINDS.map(([kind, run]) => ({ pooler, kind, run })))

/** A door whose clock a test can set; another one is another process. */
function openAt(clock: { now: number }, options: OpenOptions = {}): Once {
  return shop.open({ keys: REQUIRED, clock: () => clock.now, ...options })
}

function issuedCall(once: Once, changes: Partial<Call> = {}): Call {
  const call = makeCall(changes)
  const { account, operation } = call
  return { ...call, key: once.issueKey({ account, operation }).key }
}

async function countRecords(key: string): Promise<number> {
  const { rows } = await shop.observer.query(
    'SELECT count(*)::int AS count FROM onlyonce.records WHERE key = $1',
    [key],
  )
  return rows[0].count
}

describe.each(CASES)('an issued key, in $kind with pooler $pooler', ({ pooler, run }) => {
  const store = { pooler }

  test('runs once and replays', async () => {
    const once = openAt({ now: NOW }, { store })
    const call = issuedCall(once)
    expect(await countRecords(call.key)).toBe(0)
    expect(await run(once, call, async () => 'done')).toEqual({ outcome: 'executed', value: 'done' })
    expect(await run(once, call, async () => 'again')).toEqual({ outcome: 'replayed', value: 'done' })
    expect(await run(once, { ...call, input: 'other' })).toEqual({ outcome: 'key_reused' })
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('replays long after its expiry, and is still refused for another input', async () => {
    const clock = { now: NOW }
    const once = openAt(clock, { store })
    const call = issuedCall(once)
    await run(once, call, async () => 'done')
    for (const laterMs of [JUST_MS, LONG_MS]) {
      clock.now = NOW + laterMs
      expect(await run(once, call, async () => 'again')).toEqual({ outcome: 'replayed', value: 'done' })
      expect(await run(once, { ...call, input: 'other' })).toEqual({ outcome: 'key_reused' })
    }
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test.each([
    ['key_just_expired', JUST_MS, 503, true],
    ['key_expired', LONG_MS, 400, false],
  ])(
    'starts nothing new after its expiry and leaves no trace: %s',
    async (code, laterMs, status, retryable) => {
      const clock = { now: NOW }
      const once = openAt(clock, { store })
      const call = issuedCall(once)
      clock.now = NOW + laterMs
      expect(await catchError(run(once, call))).toMatchObject({ code, status, retryable })
      expect(await shop.countEffects(call.key)).toBe(0)
      expect(await countRecords(call.key)).toBe(0)
      expect((await once.explain(call)).state).toBe('none')
      // Nothing was burned: by a clock that is right it still runs.
      clock.now = NOW
      expect((await run(once, call)).outcome).toBe('executed')
    },
  )

  test('that was retryable runs again after its expiry: it was begun in time', async () => {
    const clock = { now: NOW }
    const once = openAt(clock, { store })
    const call = issuedCall(once)
    const failing = once.transaction(call, () => Promise.reject(new Error('no')))
    await catchError(failing)
    clock.now = NOW + LONG_MS
    expect((await run(once, call)).outcome).toBe('executed')
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('starts nothing new over a record whose retention has ended', async () => {
    const clock = { now: NOW }
    const once = openAt(clock, { store })
    const call = issuedCall(once)
    await run(once, call)
    await shop.observer.query(
      `UPDATE onlyonce.records SET state = 'expired', reply_status = NULL WHERE key = $1`,
      [call.key],
    )
    clock.now = NOW + LONG_MS
    expect(await catchError(run(once, call))).toMatchObject({ code: 'key_expired' })
    expect(await shop.countEffects(call.key)).toBe(1)
    expect((await once.explain(call)).state).toBe('expired')
  })

  test('of another account or operation is refused exactly as a forged one is', async () => {
    const once = openAt({ now: NOW }, { store })
    const call = issuedCall(once)
    await run(once, call)
    const last = call.key.endsWith('A') ? 'B' : 'A'
    const told: unknown[] = []
    for (const changes of [
      { account: 'acct_2' },
      { operation: 'refunds.create' },
      { key: call.key.slice(0, -1) + last },
      { key: `once.1.default.${'A'.repeat(52)}` },
      { key: 'once.upon a time' },
    ]) {
      const { code, status, retryable, message } = await catchError(run(once, { ...call, ...changes }))
      told.push({ code, status, retryable, message })
    }
    expect(told[0]).toMatchObject({ code: 'key_forged', status: 400, retryable: false })
    expect(told).toEqual(Array(5).fill(told[0]))
    expect(await shop.countEffects(call.key)).toBe(1)
    expect(
      (await shop.observer.query(`SELECT 1 FROM onlyonce.records WHERE account = 'acct_2'`)).rows,
    ).toEqual([])
  })

  test('is the only kind that is accepted where it is required', async () => {
    const once = openAt({ now: NOW }, { store })
    const call = makeCall()
    expect(await catchError(run(once, call))).toMatchObject({ code: 'key_not_issued', status: 400 })
    expect(await shop.countEffects(call.key)).toBe(0)
    const open = openAt({ now: NOW }, { store, keys: {} })
    expect((await run(open, call)).outcome).toBe('executed')
    const forged = { ...call, key: 'once.1.default.not-a-key-that-we-made' }
    expect(await catchError(run(open, forged))).toMatchObject({ code: 'key_forged' })
    expect((await run(open, issuedCall(open))).outcome).toBe('executed')
    // To look is not to use.
    expect((await once.explain(call)).state).toBe('completed')
  })

  test('outlives a rotation of the ring, and is not called forged where the ring lags behind', async () => {
    // A database of its own: elsewhere a process without the keys of all other records would not start.
    const own = await openShop()
    const openWith = (secret: Secret) => own.open({ keys: REQUIRED, clock: () => NOW, store, secret })
    const runThere = (once: Once, call: Call) => run(once, call, undefined, own)
    const lagging = openWith({ current: 'a', keys: { a: A } })
    const rotated = openWith({ current: 'b', keys: { a: A, b: B } })
    const old = issuedCall(lagging)
    expect((await runThere(rotated, old)).outcome).toBe('executed')
    expect((await runThere(rotated, old)).outcome).toBe('replayed')
    const fresh = issuedCall(rotated)
    expect(fresh.key).toMatch(/^once\.1\.b\./)
    expect((await runThere(rotated, fresh)).outcome).toBe('executed')
    const error = await catchError(runThere(lagging, fresh))
    expect(error).toMatchObject({ code: 'key_signer_unknown', status: 503, retryable: true })
    const mistaken = openWith({ current: 'a', keys: { a: B } })
    expect(await catchError(runThere(mistaken, old))).toMatchObject({ code: 'key_forged' })
  })

  test('from a future that no issuer gives tells of a wrong clock, and replays all the same', async () => {
    const clock = { now: NOW }
    const once = openAt(clock, { store })
    const [used, unused] = [issuedCall(once), issuedCall(once)]
    await run(once, used)
    clock.now = 0
    expect(await catchError(run(once, unused))).toMatchObject({ code: 'clocks_disagree', status: 503 })
    expect((await run(once, used)).outcome).toBe('replayed')
    expect(await countRecords(unused.key)).toBe(0)
  })
})

describe.each(POOLERS)('a key that expires under way, with pooler %s', (pooler) => {
  test('is told from one that was never used only when the first attempt must have ended', async () => {
    const clock = { now: NOW }
    const [one, other] = [openAt(clock, { store: { pooler } }), openAt(clock, { store: { pooler } })]
    const call = issuedCall(one)
    const gate = makeGate()
    const first = one.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      await gate.pass()
      return 'done'
    })
    await gate.reached
    clock.now = NOW + JUST_MS
    const early = await catchError(other.transaction(call, async () => 'beside'))
    expect(early).toMatchObject({ code: 'key_just_expired', retryable: true })
    gate.open()
    expect(await first).toEqual({ outcome: 'executed', value: 'done' })
    expect(await other.transaction(call, async () => 'beside')).toEqual({
      outcome: 'replayed',
      value: 'done',
    })
  })

  test('is seen by a second within in the same transaction, on a pool with no connection to spare', async () => {
    const clock = { now: NOW }
    const pool = shop.database.pool({ max: 1 })
    const once = openAt(clock, { store: { pooler }, pool })
    await once.start()
    const [used, unused] = [issuedCall(once), issuedCall(once)]
    const client = await pool.connect()
    await client.query('BEGIN')
    await once.within(client, used, async () => 'done')
    clock.now = NOW + LONG_MS
    const again = settleWithin(
      5_000,
      once.within(client, used, async () => 'again'),
    )
    expect(await again).toEqual({ outcome: 'replayed', value: 'done' })
    const refused = settleWithin(5_000, catchError(once.within(client, unused, async () => 'new')))
    expect(await refused).toMatchObject({ code: 'key_expired' })
    expect((await client.query('COMMIT')).command).toBe('COMMIT')
    client.release()
    expect([await countRecords(used.key), await countRecords(unused.key)]).toEqual([1, 0])
  })
})

describe('issuing', () => {
  test('writes nothing and asks nobody: the database may be away', async () => {
    const pool = shop.database.pool({ connectionString: 'postgres://nobody@127.0.0.1:1/nowhere' })
    const once = openAt({ now: NOW }, { pool })
    const { key, expiresAt } = once.issueKey({ account: 'acct_1', operation: 'transfers.create@7' })
    expect(expiresAt).toBe(NOW + LIMITS.issuedKeyLifetimeMs)
    // The version of an operation is in no key.
    const result = await openAt({ now: NOW }).transaction(makeCall({ key }), async () => 1)
    expect(result.outcome).toBe('executed')
  })

  test('goes by the clock of the process where none is given', () => {
    const before = Date.now()
    const { expiresAt } = shop.open().issueKey({ account: 'acct_1', operation: 'o', expiresInMs: 5_000 })
    expect(expiresAt).toBeGreaterThanOrEqual(before + 5_000)
    expect(expiresAt).toBeLessThanOrEqual(Date.now() + 6_000)
  })

  test.each([
    [{ account: '' }, 'account_invalid'],
    [{ operation: undefined }, 'operation_invalid'],
    [{ expiresInMs: 0 }, 'option_invalid'],
    [{ expiresInMs: 1.5 }, 'option_invalid'],
    [{ expiresInMs: LIMITS.retentionMs }, 'option_invalid'],
  ])('refuses %j as %s', (changes, code) => {
    const call = { account: 'acct_1', operation: 'transfers.create', ...changes }
    expect(() => shop.open().issueKey(call as never)).toThrow(expect.objectContaining({ code }))
  })

  test.each([
    ['clock that is no function', { clock: 7 }],
    ['rule for issued keys that does not exist', { keys: { issued: 'maybe' } }],
  ])('a %s is refused at the door', (_, options) => {
    expect(() => shop.open(options as never)).toThrow(expect.objectContaining({ code: 'option_invalid' }))
  })
})
