import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { catchError, leaveEffect, makeCall, openShop, POOLERS, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

/** Endings that hide, so that they may only be noticed when the effects before them are committed already. */
const ENDINGS = [
  '/* a comment */ COMMIT',
  '/* a comment */ COMMIT AND CHAIN',
  '/* a comment */ ROLLBACK AND CHAIN',
  'SELECT 1; COMMIT',
  'SELECT 1; COMMIT; BEGIN',
  'SELECT 1; ROLLBACK; BEGIN',
  // The word "to", as in ROLLBACK TO a savepoint, stands elsewhere in the text.
  "SELECT 'go to'; ROLLBACK; BEGIN",
  "SELECT 'to'; ROLLBACK AND CHAIN",
  'SAVEPOINT a; ROLLBACK TO a; ROLLBACK; BEGIN',
  'SAVEPOINT a; ROLLBACK TO a; /* a /* b */ */ END; BEGIN',
  // What looks like a quoted text is none.
  "SAVEPOINT a; ROLLBACK TO a; SELECT '$$'; ROLLBACK; BEGIN; SELECT '$$'",
  "SAVEPOINT a; ROLLBACK TO a; -- it's\nROLLBACK; BEGIN; SELECT ' '",
]

/** What functions do with an error of a query. */
const MANNERS: readonly (readonly [name: string, handle: (error: unknown) => unknown])[] = [
  ['lets the error pass', (error) => error],
  ['wraps the error', (error) => new Error('Could not save.', { cause: error })],
  ['throws another error', () => new Error('Could not save.')],
]

describe.each(POOLERS)('a function that ended its own transaction, with pooler %s', (pooler) => {
  describe.each(ENDINGS)('by %j', (text) => {
    test.each(MANNERS)('and %s: nothing takes effect twice', async (_, handle) => {
      const once = shop.open({ store: { pooler } })
      const call = makeCall()
      const work = async (query: string) =>
        await once.transaction(call, async (tx) => {
          await leaveEffect(tx, call.key)
          await tx.query(query).catch((error: unknown) => {
            throw handle(error)
          })
          if (query === text) throw new Error('It fails after all.')
        })
      await catchError(work(text))
      // The client retries, as it should after an error.
      await work('SELECT 1').catch(() => {})
      expect(await shop.countEffects(call.key)).toBeLessThanOrEqual(1)
    })

    test('and goes on: what is told as executed is there, and there once', async () => {
      const once = shop.open({ store: { pooler } })
      const call = makeCall()
      const told = await once
        .transaction(call, async (tx) => {
          await leaveEffect(tx, call.key)
          await tx.query(text)
        })
        .then(
          ({ outcome }) => outcome,
          () => 'failed',
        )
      const effects = await shop.countEffects(call.key)
      if (told === 'executed') expect(effects).toBe(1)
      else expect(effects === 0 || (await once.explain(call)).state === 'unknown').toBe(true)
    })
  })
})

test('queries that nobody awaited are not half done in a success', async () => {
  const once = shop.open()
  const call = makeCall()
  let lost: Promise<unknown> = Promise.resolve()
  const told = await once
    .transaction(call, async (tx) => {
      await tx.query('SELECT 1')
      lost = Promise.allSettled([1, 2, 3, 4].map(() => leaveEffect(tx, call.key)))
      // Long enough for the first one to be sent.
      await Promise.resolve().then(() => {})
    })
    .then(
      ({ outcome }) => outcome,
      () => 'failed',
    )
  await lost
  const effects = await shop.countEffects(call.key)
  if (told === 'executed') expect([0, 4]).toContain(effects)
  else expect(effects).toBe(0)
})

test.each([
  'ROLLBACK TO a',
  'rollback to savepoint a;',
  '/* back */ ROLLBACK WORK TO SAVEPOINT a; ',
  'ROLLBACK TO a; SELECT 1',
  'ROLLBACK TO a; SELECT CASE WHEN true THEN 1 ELSE 2 END',
  'ROLLBACK TO a; DO $$ BEGIN PERFORM 1; END $$',
  'ROLLBACK TO a; DO $body$ BEGIN PERFORM $$commit$$; END $body$; SELECT 1',
  "ROLLBACK TO a; DO 'BEGIN PERFORM 1; END'",
  "ROLLBACK TO a; SELECT 'it''s to abort; end' AS \"commit\"",
])('%j is about a savepoint, and the transaction goes on', async (text) => {
  const call = makeCall()
  const { outcome } = await shop.open().transaction(call, async (tx) => {
    await leaveEffect(tx, call.key)
    await tx.query('SAVEPOINT a')
    await tx.query('SELECT 1 / 0').catch(() => {})
    await tx.query(text)
  })
  expect(outcome).toBe('executed')
  expect(await shop.countEffects(call.key)).toBe(1)
})

describe.each(POOLERS)('COPY from the client, which tx cannot send, with pooler %s', (pooler) => {
  // Names of their own: connections behind a pooler keep what another client has prepared.
  const prepared = (text: string) => () => ({ name: randomUUID(), text })
  const TEXTS: readonly [string, () => string | { name: string; text: string }][] = [
    ['alone', () => 'COPY effects (note) FROM STDIN'],
    ['behind another statement', () => 'SELECT 1; COPY effects (note) FROM STDIN'],
    ['prepared', prepared('COPY effects (note) FROM STDIN')],
    ['behind a comment', prepared('/* a /* b */ */ COPY effects (note) FROM STDIN')],
  ]
  describe.each(TEXTS)('%s', (_, makeText) => {
    test.each([
      ['thrown on', false],
      ['ignored', true],
    ])('is refused with a sentence about it, %s', async (_manner, ignored) => {
      const pool = shop.database.pool({ max: 1 })
      const once = shop.open({ pool, store: { pooler } })
      const call = makeCall()
      const error = await catchError(
        once.transaction(call, async (tx) => {
          await leaveEffect(tx, call.key)
          const copied = tx.query(makeText())
          await (ignored ? copied.catch(() => {}) : copied)
        }),
      )
      expect(error).toMatchObject({ code: 'option_invalid', message: expect.stringContaining('COPY') })
      expect(await shop.countEffects(call.key)).toBe(0)
      // The only connection of the pool is not left waiting for rows.
      expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
      expect((await once.transaction(call, (tx) => leaveEffect(tx, call.key))).outcome).toBe('executed')
    })
  })
})
