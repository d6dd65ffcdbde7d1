import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { OnlyonceError } from '../../src/core/errors.ts'
import { listening } from '../adapters/servers/listen.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { waitUntil } from '../setup/wait.ts'
import { gatewayClient } from './client.ts'
import { Journal, readJournal } from './journal.ts'
import { openGateway } from './under-test.ts'
import type { Fault } from './wire.ts'

const KEY = 'key-of-a-test'
const TEA = { amount: 4200, reference: 'order_1' }

/** What came of a call, in the three kinds that a caller can tell apart. */
async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    const { status } = (await call) as { status: string }
    return status
  } catch (error) {
    return error instanceof OnlyonceError ? error.code : 'in_doubt'
  }
}

describe('a gateway', () => {
  it('charges once for a key, and answers the same again', async () => {
    const { gateway, client } = await openGateway()
    const first = await client.charge(TEA, { key: KEY })
    expect(first).toMatchObject({ object: 'charge', status: 'succeeded', ...TEA, currency: 'EUR' })
    expect(await client.charge(TEA, { key: KEY })).toEqual(first)
    expect(await client.findByKey(KEY)).toEqual({ status: 'found', result: first })
    expect(await client.findByKey('another')).toEqual({ status: 'not_found' })
    const journal = await gateway.journal()
    expect(journal).toMatchObject([{ kind: 'charge', key: KEY, id: first.id, status: 'succeeded' }])
    expect(await (await fetch(`${gateway.url}/journal`)).json()).toEqual(journal)
  })

  it('charges once for many that come at the same time', async () => {
    const { gateway, client } = await openGateway()
    const all = await Promise.all(Array.from({ length: 50 }, () => client.charge(TEA, { key: KEY })))
    expect(new Set(all.map(({ id }) => id)).size).toBe(1)
    expect(await gateway.journal()).toHaveLength(1)
  })

  it('charges every time where it does not dedupe', async () => {
    const { gateway, client } = await openGateway({ dedupe: false })
    const first = await client.charge(TEA, { key: KEY })
    expect((await client.charge(TEA, { key: KEY })).id).not.toBe(first.id)
    expect(await gateway.journal()).toHaveLength(2)
  })

  it('refuses a key with other parameters', async () => {
    const { gateway, client } = await openGateway()
    const charge = await client.charge(TEA, { key: KEY })
    const others = [{ amount: 1 }, { currency: 'USD' }, { reference: 'order_2' }, { token: 'tok_other' }]
    for (const other of others) {
      await expect(client.charge({ ...TEA, ...other }, { key: KEY })).rejects.toThrow('409')
    }
    await expect(client.refund({ charge: charge.id }, { key: KEY })).rejects.toThrow('409')
    expect(await gateway.journal()).toHaveLength(1)
  })

  it('declines, and keeps to it', async () => {
    const { client } = await openGateway()
    const broke = { ...TEA, amount: 1002 }
    const first = await client.charge(broke, { key: KEY })
    expect(first.status).toBe('declined')
    expect(await client.charge(broke, { key: KEY })).toEqual(first)
    expect(await client.findByKey(KEY)).toEqual({ status: 'found', result: first })
    expect(await client.charge({ ...TEA, token: 'tok_declined' }, { key: 'b' })).toMatchObject({
      status: 'declined',
    })
  })

  it('gives back what it took, once, and nothing else', async () => {
    const { client } = await openGateway()
    const charge = await client.charge(TEA, { key: 'charge' })
    const refund = await client.refund({ charge: charge.id }, { key: 'refund' })
    expect(refund).toMatchObject({ status: 'succeeded', charge: charge.id, amount: 4200 })
    expect(await client.refund({ charge: charge.id }, { key: 'refund' })).toEqual(refund)
    expect(await client.refund({ charge: charge.id }, { key: 'again' })).toMatchObject({ status: 'declined' })
    const stuck = await client.charge({ ...TEA, amount: 1003 }, { key: 'stuck' })
    expect(await client.refund({ charge: stuck.id }, { key: 'undo' })).toMatchObject({ status: 'declined' })
    await expect(client.refund({ charge: 'ch_none' }, { key: 'none' })).rejects.toThrow('404')
  })

  it('forgets keys after their time, by its own clock', async () => {
    const { gateway, client } = await openGateway({ keyLifetimeMs: 3_600_000 })
    await client.charge(TEA, { key: KEY })
    await gateway.advance(3_500_000)
    await client.charge(TEA, { key: KEY })
    expect(await gateway.journal()).toHaveLength(1)
    await gateway.advance(200_000)
    expect(await client.findByKey(KEY)).toEqual({ status: 'not_found' })
    await client.charge(TEA, { key: KEY })
    expect(await gateway.journal()).toHaveLength(2)
  })

  it('refuses what is no order', async () => {
    const { gateway, client } = await openGateway()
    await expect(client.charge({ ...TEA, amount: -1 }, { key: KEY })).rejects.toThrow('400')
    await expect(client.charge(TEA, { key: '' })).rejects.toThrow('400')
    const response = await fetch(`${gateway.url}/charges`, { method: 'POST', body: '{' })
    expect(response.status).toBe(400)
    expect(await gateway.journal()).toEqual([])
  })
})

describe('a gateway that misbehaves', () => {
  const cases: { fault: Fault; told: string; done: number }[] = [
    { fault: { fault: 'lose', at: 'before' }, told: 'in_doubt', done: 0 },
    { fault: { fault: 'lose', at: 'after' }, told: 'in_doubt', done: 1 },
    { fault: { fault: 'error', at: 'before' }, told: 'in_doubt', done: 0 },
    { fault: { fault: 'error', at: 'after' }, told: 'in_doubt', done: 1 },
    { fault: { fault: 'busy' }, told: 'not_executed', done: 0 },
    { fault: { fault: 'truncate' }, told: 'in_doubt', done: 1 },
    { fault: { fault: 'kill', at: 'before_journal' }, told: 'in_doubt', done: 0 },
    { fault: { fault: 'kill', at: 'within_journal' }, told: 'in_doubt', done: 0 },
    { fault: { fault: 'kill', at: 'after_journal' }, told: 'in_doubt', done: 1 },
  ]
  it.each(cases)('$fault.fault $fault.at', async ({ fault, told, done }) => {
    const { gateway, client } = await openGateway()
    await client.charge({ ...TEA, reference: 'order_0' }, { key: 'before' })
    await gateway.control({ ...fault, key: KEY })
    expect(await outcomeOf(client.charge(TEA, { key: 'bystander' }))).toBe('succeeded')
    expect(await outcomeOf(client.charge(TEA, { key: KEY }))).toBe(told)
    if (fault.fault === 'kill') {
      await gateway.ended()
      expect(await outcomeOf(client.charge(TEA, { key: KEY }))).toBe('not_executed')
      await gateway.restart()
    }
    const ofKey = async () => (await gateway.journal()).filter(({ key }) => key === KEY)
    expect(await ofKey()).toHaveLength(done)
    expect((await client.findByKey(KEY)).status).toBe(done === 1 ? 'found' : 'not_found')
    // Met once: the next try goes through, and does not charge again.
    expect(await outcomeOf(client.charge(TEA, { key: KEY }))).toBe('succeeded')
    expect(await ofKey()).toHaveLength(1)
  })

  it('answers late, by its own clock', async () => {
    const { gateway, client } = await openGateway()
    await gateway.control({ fault: 'delay', at: 'after', ms: 3_600_000 })
    const late = client.charge(TEA, { key: KEY })
    await waitUntil('it is done', async () => (await gateway.journal()).length === 1)
    await gateway.advance(3_600_000)
    expect(await outcomeOf(late)).toBe('succeeded')
  })

  it('holds an order until it is released, and carries it out although nobody waits any more', async () => {
    const { gateway, client } = await openGateway()
    await gateway.control({ fault: 'hold', at: 'before', key: KEY })
    const hangUp = new AbortController()
    const told = outcomeOf(client.charge(TEA, { key: KEY, signal: hangUp.signal }))
    await waitUntil('it is held', async () => (await gateway.state()).held.includes(KEY))
    hangUp.abort()
    expect(await told).toBe('in_doubt')
    expect(await client.findByKey(KEY)).toEqual({ status: 'not_found' })
    await gateway.control({ release: KEY })
    await waitUntil('it is found', async () => (await client.findByKey(KEY)).status === 'found')
    expect(await gateway.journal()).toHaveLength(1)
  })

  it('does not find for a while what it has done, whatever else goes wrong', async () => {
    const { gateway, client } = await openGateway()
    await gateway.control({ fault: 'lag', ms: 60_000, key: KEY })
    await gateway.control({ fault: 'lose', at: 'after', key: KEY })
    expect(await outcomeOf(client.charge(TEA, { key: KEY }))).toBe('in_doubt')
    expect(await client.findByKey(KEY)).toEqual({ status: 'not_found' })
    await gateway.restart()
    expect(await client.findByKey(KEY)).toEqual({ status: 'not_found' })
    await gateway.advance(60_000)
    expect((await client.findByKey(KEY)).status).toBe('found')
  })

  it('says that it does not know yet, or nothing at all, when it is asked', async () => {
    const { gateway, client } = await openGateway()
    await client.charge(TEA, { key: KEY })
    await gateway.control({ fault: 'pending', times: 2 })
    await gateway.control({ fault: 'error', at: 'before', on: 'lookup', key: 'b' })
    expect(await client.findByKey(KEY)).toEqual({ status: 'pending' })
    expect(await outcomeOf(client.findByKey('b'))).toBe('in_doubt')
    expect(await client.findByKey(KEY)).toEqual({ status: 'pending' })
    expect((await client.findByKey(KEY)).status).toBe('found')
  })

  it('misbehaves at a rate, and stops when told so', async () => {
    const { gateway, client } = await openGateway()
    const round = async () =>
      await Promise.all(Array.from({ length: 200 }, (_, i) => outcomeOf(client.charge(TEA, { key: `${i}` }))))
    await gateway.control({ fault: 'busy', rate: 0.5 })
    const refused = (await round()).filter((outcome) => outcome === 'not_executed')
    // Outside of this once in 10^18 runs.
    expect(refused.length).toBeGreaterThan(40)
    expect(refused.length).toBeLessThan(160)
    await gateway.control({ behave: true })
    expect(new Set(await round())).toEqual(new Set(['succeeded']))
    expect(await gateway.journal()).toHaveLength(200)
  })
})

describe('the journal of a gateway', () => {
  it('survives SIGKILL under load: what was answered is in it, once', { timeout: 120_000 }, async () => {
    const { gateway, client } = await openGateway()
    const answered = new Map<string, string>()
    for (let round = 0; round < 3; round += 1) {
      let next = 0
      const callers = Array.from({ length: 32 }, async () => {
        while (true) {
          const key = `${round}-${next++}`
          try {
            answered.set(key, (await client.charge(TEA, { key })).id)
          } catch {
            return
          }
        }
      })
      await waitUntil('it works', () => answered.size > (round + 1) * 200)
      await gateway.kill()
      await Promise.all(callers)
      await gateway.restart()
    }
    const journal = await gateway.journal()
    const done = new Map(journal.map(({ key, id }) => [key, id]))
    expect(done.size).toBe(journal.length)
    for (const [key, id] of answered) expect(done.get(key)).toBe(id)
    const [key, id] = [...answered][0]!
    expect((await client.charge(TEA, { key })).id).toBe(id)
  })

  it('goes on after a torn line, and not over one that was changed', async () => {
    const { gateway, client } = await openGateway()
    await client.charge(TEA, { key: KEY })
    const [entry] = await gateway.journal()
    const folder = mkdtempSync(join(tmpdir(), 'onlyonce-journal-'))
    cleanUpLater(async () => rmSync(folder, { recursive: true }))
    const file = join(folder, 'journal.jsonl')
    writeFileSync(file, `${JSON.stringify(entry)}\n`)
    appendFileSync(file, '{"at":12,"kind":"char')
    expect(readJournal(file)).toEqual([entry])
    const journal = new Journal(file)
    expect(journal.entries).toEqual([entry])
    await journal.add({ ...entry!, key: 'next' })
    expect(readJournal(file)).toEqual([entry, { ...entry, key: 'next' }])
    writeFileSync(file, readFileSync(file, 'utf8').replace('{', ''))
    expect(() => new Journal(file)).toThrow(SyntaxError)
  })
})

describe('the webhooks of a gateway', () => {
  async function openReceiver() {
    const received: { type: string; key: string }[] = []
    const server = createServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      received.push(JSON.parse(Buffer.concat(chunks).toString()))
      response.end()
    })
    const { port, close } = await listening(server)
    cleanUpLater(close)
    return { received, url: `http://127.0.0.1:${port}/hooks` }
  }

  it('tell what was done; late, twice or not at all when told so', async () => {
    const { received, url } = await openReceiver()
    const { gateway, client } = await openGateway({ webhookUrl: url })
    const keys = () => received.map(({ key }) => key).sort()
    const charge = await client.charge(TEA, { key: 'a' })
    await waitUntil('it was told', () => received.length === 1)
    expect(received[0]).toEqual({ type: 'charge.succeeded', key: 'a', charge })
    await client.charge(TEA, { key: 'a' })
    await gateway.control({ fault: 'lose', at: 'before', on: 'webhook', key: 'lost' })
    await gateway.control({ fault: 'double', key: 'twice' })
    await gateway.control({ fault: 'delay', at: 'before', ms: 3_600_000, on: 'webhook', key: 'late' })
    for (const key of ['late', 'lost', 'twice']) await client.charge(TEA, { key })
    await waitUntil('all but the late one were told', async () => {
      const { webhooks } = await gateway.state()
      return webhooks.delivered === 3 && webhooks.lost === 1
    })
    expect(keys()).toEqual(['a', 'twice', 'twice'])
    await gateway.advance(3_600_000)
    await waitUntil('the late one was told', () => received.length === 4)
    expect(keys()).toEqual(['a', 'late', 'twice', 'twice'])
  })
})

describe('a client of a gateway', () => {
  it('knows that nothing was done where nobody listens', async () => {
    const { gateway } = await openGateway()
    await gateway.kill()
    const client = gatewayClient(gateway.url)
    expect(await outcomeOf(client.charge(TEA, { key: KEY }))).toBe('not_executed')
  })
})
