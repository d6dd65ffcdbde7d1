import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { operation, reply } from '../../src/index.ts'
import { reconciler } from '../../src/workers/index.ts'
import { catchError, leaveEffect, makeCall, openShop, type Shop, waitUntil } from '../contract/shop.ts'

/** What the database says that no client may see. */
const TEXT = 'relation "cards" page 12'
const LEAK = /cards|page 12|SQLSTATE|relation/

const PASSING = [
  '08006',
  '25006',
  '53000',
  '53100',
  '53200',
  '53300',
  '53400',
  '55006',
  '57014',
  '57P01',
].concat(['57P02', '57P03', '58000', '58030', '58P01', '72000', 'F0000', 'HV000', 'XX000', 'XX001'])
const MISTAKES = ['0A000', '42501', '42601', '42703', '42P01', '54001']
const MEANT = ['22012', '23502', '23505', '23514', '44000', 'P0001', 'P0002', 'MY409']

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
  await shop.observer.query(`CREATE FUNCTION fail_with(code text) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION '${TEXT.replaceAll("'", "''")}' USING ERRCODE = code; END $$`)
})

interface Tx {
  query(text: string, values?: unknown[]): Promise<unknown>
}
const failWith = (tx: Tx, code: string) => tx.query('SELECT fail_with($1)', [code])

/** A transfer: a debit that can be undone, and a last step that the database may refuse. */
function transferOf(name: string, settle: (tx: Tx, failing: boolean) => Promise<unknown>) {
  const bank: string[] = []
  const state = { failing: true, bank }
  const transfer = operation(`truth.${name}`, async (op, _: unknown) => {
    await op.call('debited', { call: async () => bank.push('debit') })
    op.compensate('debit_undone', { call: async () => bank.push('debit undone') })
    return await op.transaction('settled', async (tx) => {
      await leaveEffect(tx, op.key)
      await settle(tx, state.failing)
      return reply(201, { done: true })
    })
  })
  return { transfer, state }
}

const call = () => ({ account: 'acct_1', key: makeCall().key, input: null })
const send = (POST: (request: Request) => Promise<Response>, key: string) =>
  POST(
    new Request('http://localhost/', {
      method: 'POST',
      headers: { 'idempotency-key': key, 'content-type': 'application/json' },
      body: 'null',
    }),
  )

describe('in a step behind a call', () => {
  test.each([...PASSING, ...MISTAKES])(
    '%s undoes nothing, is stored nowhere, and goes on later',
    async (code) => {
      const { transfer, state } = transferOf(`later_${code}`, async (tx, failing) => {
        if (failing) await failWith(tx, code)
      })
      const once = shop.open({ operations: [transfer], reconcileAfterMs: [1, 1, 1] })
      const POST = idempotent(once, { account: () => 'acct_1', operation: transfer })
      const { key } = call()
      const answer = await send(POST, key)
      const text = await answer.text()
      expect(JSON.parse(text)).toMatchObject({
        code: 'outcome_pending',
        retryable: true,
        executed: 'unknown',
      })
      expect(text).not.toMatch(LEAK)
      const id = { account: 'acct_1', operation: transfer.name, key }
      expect((await once.explain(id)).state).toBe('unknown')
      expect(state.bank).toEqual(['debit'])
      state.failing = false
      await waitUntil('it goes on', async () => {
        await reconciler(once).runOnce()
        return (await once.explain(id)).state === 'completed'
      })
      expect((await send(POST, key)).status).toBe(201)
      expect(state.bank).toEqual(['debit'])
      expect(await shop.countEffects(key)).toBe(1)
    },
  )

  test.each(MEANT)('%s is a throw: it is undone, and told without a word of the database', async (code) => {
    const { transfer, state } = transferOf(`meant_${code}`, (tx) => failWith(tx, code))
    const once = shop.open({ operations: [transfer] })
    const POST = idempotent(once, { account: () => 'acct_1', operation: transfer })
    const { key } = call()
    for (const answer of [await send(POST, key), await send(POST, key)]) {
      const text = await answer.text()
      expect(JSON.parse(text)).toMatchObject({ code: 'handler_failed', executed: 'unknown' })
      expect(text).not.toMatch(LEAK)
    }
    expect(state.bank).toEqual(['debit', 'debit undone'])
    expect(await shop.countEffects(key)).toBe(0)
  })

  test('what the work makes of it is its own: a throw', async () => {
    const own = new Error('the warehouse is closed')
    const { transfer, state } = transferOf('own_error', (tx) =>
      failWith(tx, '53100').catch(() => {
        throw own
      }),
    )
    const once = shop.open({ operations: [transfer] })
    const error = await catchError(once.run(transfer, call()))
    expect(error).toMatchObject({ code: 'handler_failed' })
    expect(state.bank).toEqual(['debit', 'debit undone'])
  })

  test('of a call inside its function, which found the store away, it undoes nothing', async () => {
    const once = shop.open()
    const bank: string[] = []
    const transfer = operation('truth.outer', async (op, _: unknown) => {
      await op.call('debited', { call: async () => bank.push('debit') })
      op.compensate('debit_undone', { call: async () => bank.push('debit undone') })
      return await once.transaction(makeCall(), (tx) => failWith(tx, '53100'))
    })
    expect(await once.run(transfer, call())).toMatchObject({ outcome: 'unknown' })
    expect(bank).toEqual(['debit'])
  })

  test('wrapped by a data layer it is still that of the database', async () => {
    const { transfer, state } = transferOf('wrapped', (tx) =>
      failWith(tx, '53100').catch((cause) => {
        throw new Error('Failed query', { cause })
      }),
    )
    const once = shop.open({ operations: [transfer] })
    expect(await once.run(transfer, call())).toMatchObject({ outcome: 'unknown' })
    expect(state.bank).toEqual(['debit'])
  })

  test.each([
    ['a statement that takes too long', "SET LOCAL statement_timeout = '20ms'", 'SELECT pg_sleep(10)'],
    [
      'a transaction that is read-only',
      'SET LOCAL transaction_read_only = on',
      'DELETE FROM effects WHERE false',
    ],
  ])('%s undoes nothing', async (name, before, statement) => {
    const { transfer, state } = transferOf(name.replaceAll(' ', '_'), async (tx) => {
      await tx.query(before)
      await tx.query(statement)
    })
    const once = shop.open({ operations: [transfer] })
    expect(await once.run(transfer, call())).toMatchObject({ outcome: 'unknown' })
    expect(state.bank).toEqual(['debit'])
  })
})

describe('in a step before any call', () => {
  test.each(['53100', '57014', '42P01'])('%s leaves the key to the next request', async (code) => {
    let failing = true
    const create = operation(`truth.first_${code}`, async (op, _: unknown) =>
      op.transaction('created', async (tx) => {
        await leaveEffect(tx, op.key)
        if (failing) await failWith(tx, code)
        return reply(201, { done: true })
      }),
    )
    const once = shop.open({ operations: [create] })
    const POST = idempotent(once, { account: () => 'acct_1', operation: create })
    const { key } = call()
    const text = await (await send(POST, key)).text()
    expect(JSON.parse(text)).toMatchObject({ status: 503, retryable: true, executed: 'not_by_this_request' })
    expect(text).not.toMatch(LEAK)
    failing = false
    expect((await send(POST, key)).status).toBe(201)
    expect(await shop.countEffects(key)).toBe(1)
  })
})

describe('in an undo', () => {
  test('53200 leaves it in doubt, and it goes on undoing later', async () => {
    let failing = true
    const undone: string[] = []
    const pay = operation('truth.undo', async (op, _: unknown) => {
      await op.transaction('created', (tx) => leaveEffect(tx, op.key))
      op.compensate('creation_undone', async (tx) => {
        if (failing) await failWith(tx, '53200')
        undone.push(op.key)
      })
      throw new Error('no more of it')
    })
    const once = shop.open({ operations: [pay], reconcileAfterMs: [1, 1, 1] })
    const asked = call()
    expect(await once.run(pay, asked)).toMatchObject({ outcome: 'unknown' })
    failing = false
    const id = { account: 'acct_1', operation: pay.name, key: asked.key }
    await waitUntil('it is undone', async () => {
      await reconciler(once).runOnce()
      return (await once.explain(id)).state === 'completed'
    })
    expect(undone).toEqual([asked.key])
  })
})

describe('in a transaction', () => {
  test.each(PASSING)('%s is told as a store that is away, and the same request runs later', async (code) => {
    const once = shop.open()
    let failing = true
    const POST = idempotent(
      once,
      { account: () => 'acct_1', operation: 'truth.transaction', protect: 'transaction' },
      async (_, { idempotency: context }) => {
        await leaveEffect(context!.tx, code)
        if (failing) await failWith(context!.tx, code)
        return new Response(null, { status: 201 })
      },
    )
    const { key } = call()
    const text = await (await send(POST, key)).text()
    expect(JSON.parse(text)).toMatchObject({ code: 'store_unavailable', executed: 'not_by_this_request' })
    expect(text).not.toMatch(LEAK)
    failing = false
    expect((await send(POST, key)).status).toBe(201)
    expect(await shop.countEffects(code)).toBe(1)
  })

  test.each([...MEANT, ...MISTAKES])('%s is rolled back, and thrown as it is', async (code) => {
    const once = shop.open()
    const asked = makeCall()
    const error = await catchError(once.transaction(asked, (tx) => failWith(tx, code)))
    expect(error).toMatchObject({ code, message: TEXT })
    expect((await once.explain(asked)).state).toBe('retryable')
  })

  test('a constraint that is checked at COMMIT rolls the request back, and is told without its text', async () => {
    await shop.observer.query(`CREATE TABLE late (name text, UNIQUE (name) DEFERRABLE INITIALLY DEFERRED)`)
    const once = shop.open()
    const POST = idempotent(
      once,
      { account: () => 'acct_1', operation: 'truth.deferred', protect: 'transaction' },
      async (_, { idempotency: context }) => {
        await context!.tx.query(`INSERT INTO late VALUES ('cards'), ('cards')`)
        return new Response(null, { status: 201 })
      },
    )
    const text = await (await send(POST, call().key)).text()
    expect(JSON.parse(text)).toMatchObject({ code: 'not_applied', executed: 'not_by_this_request' })
    expect(text).not.toMatch(LEAK)
  })
})

describe('in a handler', () => {
  test("an error of the user's own pool is the handler's throw, and its text is told to nobody", async () => {
    const once = shop.open()
    const asked = makeCall()
    const thrown = await catchError(once.execute(asked, () => failWith(shop.observer, '53100')))
    expect(thrown).toMatchObject({ code: '53100' })
    const again = await catchError(once.execute(asked, async () => 1))
    expect(again).toMatchObject({ code: 'handler_failed', executed: 'unknown' })
    expect(again.message).not.toMatch(LEAK)
    expect(again.cause.message).toContain(TEXT)
  })
})

test('a database that is read-only is a store that is away, whatever is asked of it', async () => {
  const own = await openShop()
  const { observer, database } = own
  await observer.query(`ALTER DATABASE ${database.name} SET default_transaction_read_only = on`)
  const once = own.open({ pool: database.direct({ max: 4 }) })
  const pay = operation('truth.read_only', async (op, _: unknown) => {
    await op.call('charged', { call: async () => 'never' })
    return reply(201)
  })
  const away = { code: 'store_unavailable', retryable: true }
  expect(await catchError(once.transaction(makeCall(), (tx) => leaveEffect(tx, 'never')))).toMatchObject(away)
  expect(await catchError(once.execute(makeCall(), async () => 1))).toMatchObject(away)
  const told = await catchError(once.run(pay, { ...call(), deadlineMs: 500 }))
  expect(['store_unavailable', 'outcome_unknown']).toContain(told.code)
})
