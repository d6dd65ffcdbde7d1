import type pg from 'pg'
import { beforeAll, expect, it } from 'vitest'
import type { Onlyonce } from '../../src/index.ts'
import { type Inbox, inbox, relay } from '../../src/outbox/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { beginCaller, catchError, leaveEffect, makeCall, openShop, type Shop } from '../contract/shop.ts'
import { inTransaction, runDry } from './office.ts'

let shop: Shop
let pool: pg.Pool
let once: Onlyonce<PostgresTx>
let box: Inbox
beforeAll(async () => {
  shop = await openShop()
  pool = shop.database.pool({ max: 50 })
  once = shop.open()
  await once.start()
  box = inbox(once)
})

const messageOf = (messageId: string) => ({ account: 'acct_1', source: 'gateway', messageId })
const receive = (messageId: string, note = messageId) =>
  inTransaction(pool, (tx) => box.once(tx, messageOf(messageId), async () => leaveEffect(tx, note)))

it('fifty deliveries at once have one effect', async () => {
  const outcomes = await Promise.all(Array.from({ length: 50 }, () => receive('msg_1')))
  expect(outcomes.filter(({ outcome }) => outcome === 'executed')).toHaveLength(1)
  expect(outcomes.filter(({ outcome }) => outcome === 'seen')).toHaveLength(49)
  expect(await shop.countEffects('msg_1')).toBe(1)
})

it('gives the value of the function, and asks nobody when it was seen', async () => {
  const tx = await beginCaller(shop)
  expect(await box.once(tx, messageOf('msg_2'), async () => 5)).toEqual({ outcome: 'executed', value: 5 })
  const again = box.once(tx, messageOf('msg_2'), () => Promise.reject(new Error('ran again')))
  expect(await again).toEqual({ outcome: 'seen' })
  await tx.query('COMMIT')
})

it('works in a protected transaction', async () => {
  const outcomes: string[] = []
  for (let n = 0; n < 2; n += 1) {
    await once.transaction(makeCall(), async (tx) => {
      const { outcome } = await box.once(tx, messageOf('msg_0'), async () => leaveEffect(tx, 'msg_0'))
      outcomes.push(outcome)
    })
  }
  expect(outcomes).toEqual(['executed', 'seen'])
  expect(await shop.countEffects('msg_0')).toBe(1)
})

it('tells messages apart by account, source and id', async () => {
  const tx = await beginCaller(shop)
  const message = messageOf('msg_3')
  for (const other of [message, { ...message, account: 'acct_2' }, { ...message, source: 'bank' }]) {
    expect((await box.once(tx, other, async () => {})).outcome).toBe('executed')
  }
})

it('what is rolled back was not seen', async () => {
  const tx = await beginCaller(shop)
  await box.once(tx, messageOf('msg_4'), async () => leaveEffect(tx, 'msg_4'))
  await tx.query('ROLLBACK')
  expect(await shop.countEffects('msg_4')).toBe(0)
  expect((await receive('msg_4')).outcome).toBe('executed')
  expect(await shop.countEffects('msg_4')).toBe(1)
})

it('a function that throws leaves nothing, and the transaction goes on', async () => {
  const tx = await beginCaller(shop)
  await leaveEffect(tx, 'before')
  const failing = box.once(tx, messageOf('msg_5'), async () => {
    await leaveEffect(tx, 'msg_5')
    await tx.query('SELECT 1 / 0')
  })
  expect((await catchError(failing)).code).toBe('22012')
  await tx.query('COMMIT')
  expect([await shop.countEffects('before'), await shop.countEffects('msg_5')]).toEqual([1, 0])
  expect((await receive('msg_5')).outcome).toBe('executed')
  expect(await shop.countEffects('msg_5')).toBe(1)
})

it('needs a transaction, and proper names', async () => {
  const client = await pool.connect()
  expect((await catchError(box.once(client, messageOf('msg_6'), async () => {}))).code).toBe(
    'transaction_required',
  )
  client.release()
  const tx = await beginCaller(shop)
  for (const bad of [
    { account: '', source: 's', messageId: 'm' },
    { account: 'a', source: '', messageId: 'm' },
    { account: 'a', source: 's', messageId: 'm'.repeat(300) },
  ]) {
    expect((await catchError(box.once(tx, bad, async () => {}))).code).toMatch(
      /account_invalid|option_invalid/,
    )
  }
})

it('forgets messages after their retention', async () => {
  await receive('msg_7')
  const jobs = { none: async () => {} }
  await runDry(relay(once, { jobs }))
  expect((await receive('msg_7')).outcome).toBe('seen')
  await runDry(relay(once, { jobs, inboxRetentionMs: 1 }))
  expect((await receive('msg_7')).outcome).toBe('executed')
})
