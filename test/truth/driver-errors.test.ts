/** What the driver, and not the author's work, has to say: it is told as trouble of the store, and never as a throw of the work. */
import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { operation, reply } from '../../src/index.ts'
import { leaveEffect, makeCall, openShop, type Shop } from '../contract/shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
})

const account = () => 'acct_1'
const LEAK = /Query read timeout|permission|records|relation|bind message/

type Post = (request: Request) => Promise<Response>
const send = async (POST: Post, key: string) => {
  const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
  const answer = await POST(new Request('http://localhost/', { method: 'POST', headers, body: 'null' }))
  return { status: answer.status, text: await answer.text() }
}

/** A call that can be undone, and a last step that is too slow for the pool, or is sent with too few values. */
function sagaOf(name: string, settle: string, values: unknown[]) {
  const done: string[] = []
  const state = { failing: true }
  const saga = operation(`driver.${name}`, async (op, _: unknown) => {
    await op.call('charged', { call: async () => done.push('charged') })
    op.compensate('refunded', { call: async () => done.push('refunded') })
    return await op.transaction('settled', async (tx) => {
      if (state.failing) await tx.query(settle, values)
      await leaveEffect(tx, op.key)
      return reply(201, {})
    })
  })
  return { saga, state, done }
}

describe.each([
  ['a time-out of pg itself', 'SELECT pg_sleep(5)', []],
  ['a statement with too few values', 'SELECT $1::int + $2::int', [1]],
] as const)('%s', (name, text, values) => {
  const open = () => shop.open({ poolOptions: { query_timeout: 400 } })

  test('undoes no operation, is stored nowhere, and goes on later', async () => {
    const { saga, state, done } = sagaOf(name.replaceAll(' ', '_'), text, [...values])
    const once = open()
    const POST = idempotent(once, { account, operation: saga })
    const { key } = makeCall()
    const first = await send(POST, key)
    expect(JSON.parse(first.text)).toMatchObject({ retryable: true, executed: 'unknown' })
    expect(first.text).not.toMatch(LEAK)
    expect(done).toEqual(['charged'])
    state.failing = false
    const { state: left } = await once.explain({ account: 'acct_1', operation: saga.name, key })
    expect(left).toBe('unknown')
  })

  test('rolls a transaction back, which may run again, and is told without a word of the driver', async () => {
    let failing = true
    const once = open()
    const POST = idempotent(
      once,
      { account, operation: 'driver.transaction', protect: 'transaction' },
      async (_request, { idempotency: own }) => {
        const { tx } = own!
        await leaveEffect(tx, key)
        if (failing) await tx.query(text, [...values])
        return new Response(null, { status: 201 })
      },
    )
    const { key } = makeCall()
    // A mistake of the author's is the handler's own throw, which the framework is given.
    const first = await send(POST, key).catch(({ code }) => ({ status: 500, text: code }))
    expect(first.text).not.toMatch(LEAK)
    expect(first.status).toBeGreaterThanOrEqual(500)
    failing = false
    expect((await send(POST, key)).status).toBe(201)
    expect(await shop.countEffects(key)).toBe(1)
  })
})

test('a statement with too few values is no word that the store is away', async () => {
  const thrown = shop.open().transaction(makeCall(), (tx) => tx.query('SELECT $1::int + $2::int', [1]))
  await expect(thrown).rejects.toMatchObject({ code: '08P01' })
})

describe('a record that the server refuses is told to the client of an operation without a word of the driver', () => {
  const POST = () => {
    const pay = operation('driver.refused', async (op) => {
      await op.call('charged', { call: async () => 1 })
      return reply(201, {})
    })
    return idempotent(shop.open(), { account, operation: pay })
  }

  test('where it is claimed', async () => {
    await shop.observer.query(`CREATE FUNCTION refuse_record() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'permission denied for table records' USING ERRCODE = '42501'; END $$;
      CREATE TRIGGER refuse BEFORE INSERT ON onlyonce.records FOR EACH ROW WHEN (NEW.operation = 'driver.refused')
      EXECUTE FUNCTION refuse_record()`)
    const told = await send(POST(), makeCall().key)
    expect(told.text).not.toMatch(LEAK)
    expect(JSON.parse(told.text)).toMatchObject({ code: 'not_applied', executed: 'not_by_this_request' })
  })

  test('where it is looked up', async () => {
    const here = await openShop()
    const pay = operation('driver.refused', async () => reply(201, {}))
    const once = here.open()
    await once.start()
    await here.observer.query('ALTER TABLE onlyonce.records RENAME TO gone')
    const told = await send(idempotent(once, { account, operation: pay }), makeCall().key)
    expect(told.text).not.toMatch(LEAK)
    expect(JSON.parse(told.text)).toMatchObject({ code: 'store_unavailable' })
  })

  test('and what the function itself throws is for the framework, as ever', async () => {
    const own = new Error('the warehouse is closed')
    const pay = operation('driver.own', async () => {
      throw own
    })
    const thrown = send(idempotent(shop.open(), { account, operation: pay }), makeCall().key)
    await expect(thrown).rejects.toBe(own)
  })
})
