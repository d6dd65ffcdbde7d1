import { beforeAll, describe, expect, test } from 'vitest'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { catchError, leaveEffect, makeCall, openShop, POOLERS, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

const ENDINGS = [
  'COMMIT',
  'commit;',
  '  COMMIT WORK',
  'END',
  'ROLLBACK',
  'ROLLBACK AND CHAIN',
  'COMMIT AND CHAIN',
  'ABORT',
  'BEGIN',
  'START TRANSACTION',
  "PREPARE TRANSACTION 'x'",
]

/** What an ending may hide behind. */
const DISGUISES = [
  '-- a comment\nCOMMIT',
  '/* a /* nested */ comment */ COMMIT',
  'SELECT 1; COMMIT',
  'SELECT 1; COMMIT; BEGIN',
  '; COMMIT',
]

describe.each(POOLERS)('endings through tx, with pooler %s', (pooler) => {
  test.each(ENDINGS)('%s is refused, nothing has happened, and the retry runs', async (text) => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const error = await catchError(
      once.transaction(call, async (tx) => {
        await leaveEffect(tx, call.key)
        await tx.query(text)
        await leaveEffect(tx, call.key)
      }),
    )
    expect(error.code).toBe('transaction_control_refused')
    expect(await shop.countEffects(call.key)).toBe(0)
    expect((await once.explain(call)).state).toBe('retryable')
    expect((await once.transaction(call, (tx) => leaveEffect(tx, call.key))).outcome).toBe('executed')
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test.each(ENDINGS)('%s as the first statement is refused, and the retry runs', async (text) => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const error = await catchError(
      once.transaction(call, async (tx) => {
        await tx.query(text)
      }),
    )
    expect(error.code).toBe('transaction_control_refused')
    expect((await once.transaction(call, async () => 1)).outcome).toBe('executed')
  })

  test.each(DISGUISES)('%j never takes effect twice and is never reported as success', async (text) => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const work = async (query: string) =>
      await once.transaction(call, async (tx) => {
        await leaveEffect(tx, call.key)
        await tx.query(query)
      })
    const { code } = await catchError(work(text))
    expect(['transaction_control_refused', 'transaction_ended_inside']).toContain(code)
    expect((await once.explain(call)).state).not.toBe('completed')
    // If it was prevented the retry runs; if it was only noticed the effects are there, and nothing may run.
    await work('SELECT 1').catch(() => {})
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test.each([...ENDINGS, ...DISGUISES])('%j swallowed: what is told is what is there', async (text) => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const told = await once
      .transaction(call, async (tx) => {
        await leaveEffect(tx, call.key)
        await tx.query(text).catch(() => {})
        return 'fine'
      })
      .then(
        ({ outcome }) => outcome,
        () => 'failed',
      )
    const { state } = await once.explain(call)
    const effects = await shop.countEffects(call.key)
    if (told === 'executed') expect({ state, effects }).toEqual({ state: 'completed', effects: 1 })
    else if (effects === 0) expect(state).not.toBe('completed')
    // Whatever could not be prevented must keep the key from running again.
    else expect(state).toBe('unknown')
  })
})

describe.each(POOLERS)('misuse of tx, with pooler %s', (pooler) => {
  test('words that only look like an ending pass', async () => {
    const once = shop.open({ store: { pooler } })
    const result = await once.transaction(makeCall(), async (tx) => {
      const { rows } = await tx.query("SELECT 'COMMIT; ROLLBACK' AS commit")
      await tx.query('/* COMMIT */ SELECT 1 -- ROLLBACK')
      return rows[0]!.commit
    })
    expect(result).toEqual({ outcome: 'executed', value: 'COMMIT; ROLLBACK' })
  })

  test('savepoints are allowed', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const result = await once.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      await tx.query('SAVEPOINT here')
      await leaveEffect(tx, call.key)
      await catchError(tx.query('SELECT 1 / 0'))
      await tx.query('ROLLBACK TO SAVEPOINT here')
      await tx.query('RELEASE SAVEPOINT here')
      await tx.query('SAVEPOINT there')
      await tx.query('ROLLBACK TO there')
      return 'done'
    })
    expect(result).toEqual({ outcome: 'executed', value: 'done' })
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('a savepoint as the first statement', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const result = await once.transaction(call, async (tx) => {
      await tx.query('SAVEPOINT here')
      await catchError(tx.query('SELECT 1 / 0'))
      await tx.query('ROLLBACK TO SAVEPOINT here')
      await leaveEffect(tx, call.key)
    })
    expect(result.outcome).toBe('executed')
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('queries that nobody awaits are part of the work', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const result = await once.transaction(call, async (tx) => {
      for (let i = 0; i < 3; i += 1) void leaveEffect(tx, call.key)
      return 'done'
    })
    expect(result).toEqual({ outcome: 'executed', value: 'done' })
    expect(await shop.countEffects(call.key)).toBe(3)
  })

  test.each(['returned', 'thrown'])('tx after the function has %s is over', async (how) => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    let kept: PostgresTx | undefined
    await once
      .transaction(call, async (tx) => {
        kept = tx
        await leaveEffect(tx, call.key)
        if (how === 'thrown') throw new Error('no')
      })
      .catch(() => {})
    const error = await catchError(leaveEffect(kept!, 'too late'))
    expect(error.code).toBe('transaction_over')
    expect(await shop.countEffects('too late')).toBe(0)
  })

  test('a swallowed failure of a query is not reported as success', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const error = await catchError(
      once.transaction(call, async (tx) => {
        await leaveEffect(tx, call.key)
        await tx.query('SELECT 1 / 0').catch(() => {})
        return 'fine'
      }),
    )
    // It names what really went wrong, or the reader searches for ever.
    expect([error.code, error.cause?.code]).toContain('22012')
    expect(await shop.countEffects(call.key)).toBe(0)
    expect((await once.explain(call)).state).toBe('retryable')
  })

  test('a failing first query that is swallowed is not reported as success', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    await catchError(
      once.transaction(call, async (tx) => {
        await tx.query('SELECT 1 / 0').catch(() => {})
        return 'fine'
      }),
    )
    expect((await once.explain(call)).state).toBe('retryable')
  })

  test('a failing query that nobody awaited is not reported as success', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    let lost: Promise<unknown> = Promise.resolve()
    await catchError(
      once.transaction(call, async (tx) => {
        await leaveEffect(tx, call.key)
        lost = tx.query('SELECT 1 / 0').catch(() => {})
        return 'fine'
      }),
    )
    await lost
    expect(await shop.countEffects(call.key)).toBe(0)
    expect((await once.explain(call)).state).not.toBe('completed')
    expect((await once.transaction(call, (tx) => leaveEffect(tx, call.key))).outcome).toBe('executed')
  })

  test('a query that nobody awaited takes part entirely or not at all', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    let lost: Promise<boolean> = Promise.resolve(false)
    const told = await once
      .transaction(call, async (tx) => {
        await tx.query('SELECT 1')
        lost = leaveEffect(tx, call.key).then(
          () => true,
          () => false,
        )
      })
      .then(
        ({ outcome }) => outcome,
        () => 'failed',
      )
    const wasDone = await lost
    expect(await shop.countEffects(call.key)).toBe(wasDone && told === 'executed' ? 1 : 0)
    expect((await once.explain(call)).state === 'completed').toBe(told === 'executed')
  })

  test('queries sent side by side all take part', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    await once.transaction(call, async (tx) => {
      await Promise.all(Array.from({ length: 10 }, () => leaveEffect(tx, call.key)))
    })
    expect(await shop.countEffects(call.key)).toBe(10)
  })

  test('settings that the function makes with SET LOCAL end with it', async () => {
    const pool = shop.database.pool({ max: 1 })
    const once = shop.open({ pool, store: { pooler } })
    const names = ['lock_timeout', 'idle_in_transaction_session_timeout', 'statement_timeout', 'search_path']
    const read = async () =>
      (await pool.query('SELECT name, setting FROM pg_settings WHERE name = ANY ($1)', [names])).rows
    const before = await read()
    await once.transaction(makeCall(), async (tx) => {
      await tx.query("SET LOCAL statement_timeout = '5s'")
    })
    await catchError(once.transaction(makeCall(), (tx) => tx.query('SELECT 1 / 0')))
    expect(await read()).toEqual(before)
  })
})
