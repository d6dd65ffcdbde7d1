import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { Journal, readJournal } from '../journal.ts'
import { failureOf, HELD_TEA, movedBy, newKey, openGateway, TEA } from './under-test.ts'

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-journal-'))
  cleanUpLater(async () => rmSync(folder, { recursive: true }))
  return folder
}

describe('after SIGKILL', async () => {
  const folder = newFolder()
  const { gateway, stripe } = await openGateway({ folder, searchLagMs: 0 })

  it('everything is as it was: things, keys, events, the clock', async () => {
    await gateway.advance(1_000_000)
    const keys = { paid: newKey(), declined: newKey(), refused: newKey(), failed: newKey(), refund: newKey() }
    const pay = (idempotencyKey: string, change: object = {}) =>
      stripe.paymentIntents.create({ ...TEA, metadata: { a: 'b' }, ...change }, { idempotencyKey })
    const paid = await pay(keys.paid)
    const declined = () => failureOf(pay(keys.declined, { payment_method: 'pm_card_chargeDeclined' }))
    const { payment_intent: paymentIntent } = await declined()
    const held = await stripe.paymentIntents.create(HELD_TEA)
    await stripe.paymentIntents.capture(held.id, { amount_to_capture: 100, final_capture: false })
    const refused = () =>
      failureOf(
        stripe.refunds.create({ payment_intent: held.id, amount: 101 }, { idempotencyKey: keys.refused }),
      )
    const { message } = await refused()
    await gateway.fault({ fault: 'error_after', key: keys.failed })
    await failureOf(pay(keys.failed))
    const refund = () =>
      stripe.refunds.create({ payment_intent: paid.id, amount: 1 }, { idempotencyKey: keys.refund })
    const refunded = await refund()
    const look = async () => ({
      intents: (await stripe.paymentIntents.list({ limit: 100 })).data,
      refunds: (await stripe.refunds.list()).data,
      events: (await stripe.events.list({ limit: 100 })).data,
      found: (await stripe.paymentIntents.search({ query: "metadata['a']:'b'" })).data,
      journal: await (
        await fetch(`${gateway.url}/_sandbox/journal`, {
          headers: { authorization: `Bearer ${gateway.controlToken}` },
        })
      ).json(),
    })
    const before = await look()
    const { now, movements } = await gateway.state()
    const { pid } = gateway

    await gateway.kill()
    expect(await failureOf(pay(newKey()))).toMatchObject({ type: 'StripeConnectionError' })
    appendFileSync(join(folder, 'journal.jsonl'), '{"kind":"capture","at":17,"key":"to')
    await gateway.restart()

    expect(gateway.pid).not.toBe(pid)
    expect(await look()).toEqual(before)
    expect(await gateway.journal()).toEqual(before.journal)
    expect(await gateway.state()).toMatchObject({ movements })
    expect((await gateway.state()).now).toBeGreaterThanOrEqual(now)
    expect(await pay(keys.paid)).toEqual(paid)
    expect((await declined()).payment_intent).toEqual(paymentIntent)
    expect((await refused()).message).toBe(message)
    expect(await failureOf(pay(keys.failed))).toMatchObject({ statusCode: 500 })
    expect(await refund()).toEqual(refunded)
    expect(await failureOf(pay(keys.paid, { amount: 1 }))).toMatchObject({ type: 'StripeIdempotencyError' })
    expect(await gateway.journal()).toEqual(before.journal)
    expect(await gateway.requests(keys.paid)).toHaveLength(3)
    expect((await pay(newKey())).status).toBe('succeeded')
  })

  it('under load, what was answered is in the journal, once', async () => {
    const answered = new Map<string, string>()
    let next = 0
    const callers = Array.from({ length: 16 }, async () => {
      while (true) {
        const key = `${next++}`
        try {
          answered.set(key, (await stripe.paymentIntents.create(TEA, { idempotencyKey: key })).id)
        } catch {
          return
        }
      }
    })
    await waitUntil('it works', () => answered.size > 300)
    await gateway.kill()
    await Promise.all(callers)
    await gateway.restart()
    const [key, id] = [...answered].at(-1)!
    expect((await stripe.paymentIntents.create(TEA, { idempotencyKey: key })).id).toBe(id)
    const journal = await gateway.journal()
    const done = new Map(journal.map(({ key, payment_intent: paymentIntent }) => [key, paymentIntent]))
    expect(done.size).toBe(journal.length)
    for (const [key, id] of answered) expect(done.get(key)).toBe(id)
  })

  it('by its own hand, before, within and after a line of the journal', async () => {
    for (const { fault, moved } of [
      { fault: 'kill_before_journal', moved: [] },
      { fault: 'kill_within_journal', moved: [] },
      { fault: 'kill_after_journal', moved: ['capture 4200'] },
    ] as const) {
      const key = newKey()
      const pay = () => stripe.paymentIntents.create(TEA, { idempotencyKey: key })
      await gateway.fault({ fault, key })
      expect(await failureOf(pay())).toMatchObject({ type: 'StripeConnectionError' })
      await gateway.ended()
      await gateway.restart()
      expect(await movedBy(gateway, key)).toEqual(moved)
      expect((await pay()).status).toBe('succeeded')
      expect(await movedBy(gateway, key)).toEqual(['capture 4200'])
      expect(await gateway.requests(key)).toHaveLength(2)
    }
  })
})

describe('a journal', () => {
  it('goes on after a torn line, and not over one that was changed', async () => {
    const file = join(newFolder(), 'journal.jsonl')
    writeFileSync(file, '{"a":"ä"}\n{"a":')
    expect(readJournal(file)).toEqual([{ a: 'ä' }])
    const journal = new Journal<{ a: string }>(file, { synced: true })
    expect(journal.lines).toEqual([{ a: 'ä' }])
    await journal.add({ a: 'next' })
    expect(readJournal(file)).toEqual([{ a: 'ä' }, { a: 'next' }])
    expect(journal.settled()).toBeNull()
    await journal.close()
    writeFileSync(file, readFileSync(file, 'utf8').replace('{', ''))
    expect(() => new Journal(file, { synced: true })).toThrow(SyntaxError)
  })

  it('writes what comes at the same time together, in order', async () => {
    const file = join(newFolder(), 'journal.jsonl')
    const journal = new Journal<number>(file, { synced: true })
    const numbers = Array.from({ length: 100 }, (_, i) => i)
    const written = numbers.map((number) => journal.add(number))
    // One promise, so one write and one sync.
    expect(new Set(written).size).toBe(1)
    await Promise.all(written)
    expect(readJournal(file)).toEqual(numbers)
    await journal.close()
  })
})
