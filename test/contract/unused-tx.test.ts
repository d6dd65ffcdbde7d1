import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, expect, test } from 'vitest'
import type { Observer, Signal } from '../../src/entries/observe.ts'
import { idempotent } from '../../src/http/adapters/node/index.ts'
import { type OnlyonceOptions, onlyonce } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { catchError, leaveEffect, makeCall, openShop, SECRET, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

/** What a pool or an ORM of the application's own does: it knows nothing of the transaction. */
const elsewhere = (key: string) => leaveEffect(shop.observer, key)

function recorder(): { readonly observe: Observer; readonly heard: Signal[] } {
  const heard: Signal[] = []
  const observe = { signal: (signal: Signal) => void (signal.signal === 'tx_unused' && heard.push(signal)) }
  return { observe, heard }
}

/** Resolves to the warnings that the process has given meanwhile. */
async function warningsOf(during: () => Promise<unknown>): Promise<string[]> {
  const warnings: string[] = []
  const note = (warning: Error) => {
    if (warning.name === 'OnlyonceTransactionWarning') warnings.push(warning.message)
  }
  process.on('warning', note)
  await during()
  // Warnings are told in the next turn.
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', note)
  return warnings
}

test('a transaction without a statement on its tx is told to observers, the first of its operation as such', async () => {
  const { observe, heard } = recorder()
  const once = shop.open({ observe })
  const warnings = await warningsOf(async () => {
    for (const operation of ['unused.a', 'unused.a', 'unused.b']) {
      const call = makeCall({ operation })
      expect((await once.transaction(call, () => elsewhere(call.key))).outcome).toBe('executed')
    }
  })
  expect(heard.map((signal) => 'first' in signal && signal.first)).toEqual([true, false, true])
  expect(heard[0]).toMatchObject({ protection: 'transaction', id: { operation: 'unused.a' } })
  expect(warnings).toEqual([])
})

test('where nobody observes, the process warns once for each operation', async () => {
  const once = shop.open()
  const warnings = await warningsOf(async () => {
    for (const operation of ['unused.c', 'unused.c', 'unused.d']) {
      const call = makeCall({ operation })
      await once.transaction(call, () => elsewhere(call.key))
    }
  })
  expect(warnings.map((warning) => warning.split(':')[0])).toEqual(['unused.c', 'unused.d'])
  expect(warnings[0]).toContain('without a single statement on its tx')
})

test.each(['INSERT INTO effects (note) VALUES ($1)', 'SELECT $1::text'])(
  'a statement on tx is enough, also one that only reads: %s',
  async (text) => {
    const { observe, heard } = recorder()
    const once = shop.open({ observe, strictTx: true })
    const call = makeCall()
    await once.transaction(call, async (tx) => void (await tx.query(text, [call.key])))
    expect(await once.transaction(call, async () => 1)).toMatchObject({ outcome: 'replayed' })
    expect(heard).toEqual([])
  },
)

const STRICT: Readonly<
  Record<string, [Partial<OnlyonceOptions<never>>, { strictTx?: boolean; exclusive?: boolean }]>
> = {
  'of the call': [{}, { strictTx: true }],
  'of the call, exclusive': [{}, { strictTx: true, exclusive: true }],
  'of onlyonce()': [{ strictTx: true }, {}],
}

test.each(Object.entries(STRICT))(
  'with strictTx %s the record is unknown, and nothing runs again',
  async (_, [options, more]) => {
    const { observe, heard } = recorder()
    const once = shop.open({ ...options, observe } as never)
    const call = makeCall()
    const work = () => elsewhere(call.key)
    const error = await catchError(once.transaction({ ...call, ...more }, work))
    expect(error).toMatchObject({ code: 'transaction_unused', retryable: false, executed: 'unknown' })
    expect(heard).toHaveLength(1)
    const { state, why } = await once.explain(call)
    expect([state, why]).toEqual(['unknown', expect.stringContaining('transaction_unused')])
    // Here and in another process: the effect elsewhere stands, and is never made again.
    for (const door of [once, shop.open(options as never)]) {
      expect((await door.transaction({ ...call, ...more }, work)).outcome).toBe('unknown')
    }
    expect(await shop.countEffects(call.key)).toBe(1)
    // A person looks, and decides.
    await operator(once).resolve(call, { by: 'ann', why: 'it is there', reply: { status: 200, body: '7' } })
    expect(await once.transaction(call, work)).toEqual({ outcome: 'replayed', value: 7 })
  },
)

test('it is looked at after the graceMs of the front door', async () => {
  const once = shop.open({ strictTx: true, graceMs: 77_000, observe: recorder().observe })
  const call = makeCall()
  await catchError(once.transaction(call, () => elsewhere(call.key)))
  const text =
    'SELECT round(extract(epoch FROM look_at - changed_at))::int AS s FROM onlyonce.records WHERE key = $1'
  expect((await shop.observer.query(text, [call.key])).rows).toEqual([{ s: 77 }])
})

test('a call may say that it is not strict', async () => {
  const once = shop.open({ strictTx: true, observe: recorder().observe })
  const call = makeCall()
  expect((await once.transaction({ ...call, strictTx: false }, async () => 1)).outcome).toBe('executed')
})

test('strictTx needs no connection for its verdict: a pool that is full makes nothing retryable', async () => {
  const pool = shop.database.pool({ max: 1 })
  const once = shop.open({ pool, observe: recorder().observe, store: { connectionWaitMaxMs: 300 } })
  await once.start()
  const call = makeCall()
  let held: { release(): void } | null = null
  const ran = once.transaction({ ...call, strictTx: true }, async () => {
    held = await pool.connect()
    await elsewhere(call.key)
    // The record is written as soon as there is a connection again.
    setImmediate(() => held!.release())
  })
  expect(await catchError(ran)).toMatchObject({ code: 'transaction_unused' })
  expect((await once.explain(call)).state).toBe('unknown')
})

test('work that throws before it has used tx is rolled back, as ever', async () => {
  const once = shop.open({ strictTx: true })
  const call = makeCall()
  const refused = once.transaction(call, async () => {
    throw new Error('not like this')
  })
  expect((await catchError(refused)).message).toBe('not like this')
  expect((await once.explain(call)).state).toBe('retryable')
})

test('a route that writes on a pool of its own is 500 transaction_unused, and its retry never runs', async () => {
  const once = shop.open({ observe: recorder().observe })
  const policy = {
    account: () => 'acct_1',
    operation: 'unused.route',
    protect: 'transaction',
    strictTx: true,
  } as const
  const server = createServer(
    idempotent(once, policy, async (request, response) => {
      await elsewhere(String(request.headers['idempotency-key']))
      response.statusCode = 201
      response.end('made')
    }),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUpLater(async () => void server.close())
  const key = crypto.randomUUID()
  const send = async () => {
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
      method: 'POST',
      headers: { 'idempotency-key': key },
    })
    return {
      status: response.status,
      problem: (await response.json()) as { code: string; retryable: boolean },
    }
  }
  expect(await send()).toMatchObject({
    status: 500,
    problem: { code: 'transaction_unused', retryable: false },
  })
  const again = await send()
  expect(again.status).toBe(409)
  expect(await shop.countEffects(key)).toBe(1)
})

test('strictTx is refused where there is no transaction', () => {
  const make = () => idempotent(shop.open(), { account: () => 'a', operation: 'o', strictTx: true }, () => {})
  expect(make).toThrow(/strictTx concerns transactions \(protect: 'transaction'/)
})

test('the memory store has no tx to use, and says nothing', async () => {
  const { observe, heard } = recorder()
  const once = onlyonce({ store: memory(), secret: SECRET, observe, strictTx: true })
  expect((await once.transaction(makeCall(), async () => 1)).outcome).toBe('executed')
  expect(heard).toEqual([])
  await once.close()
})
