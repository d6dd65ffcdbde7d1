import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { invalid, notExecuted, type Op, operation, reply } from '../../src/index.ts'
import { completer } from '../../src/workers/index.ts'
import { catchError, openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { makeRecorder } from '../setup/recorder.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

const lost = async () => {
  throw new Error('hung up')
}

describe('what observers hear of operations', () => {
  test('a first attempt that ends in doubt was the first, and a retry of it met an unknown record', async () => {
    const heard = makeRecorder()
    const once = shop.open({ observe: heard })
    const pay = operation('told.doubt', async (op: Op) =>
      op.call('charged', { idempotent: false, call: lost }),
    )
    const call = { account: 'acct_1', key: randomUUID(), input: null }
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    expect(heard.of('reserved')).toMatchObject([{ kind: 'created' }])
    await once.run(pay, call)
    expect(heard.of('reserved')).toMatchObject([{ kind: 'created' }, { kind: 'unknown' }])
  })

  test('a worker that finishes an abandoned operation says so', async () => {
    const heard = makeRecorder()
    const once = shop.open({ observe: heard })
    let owners = 0
    const pay = operation('told.abandoned', async (op: Op) => {
      await op.transaction('created', async () => 1)
      owners += 1
      if (owners === 1) await new Promise(() => {})
      return reply(201)
    })
    const call = { account: 'acct_1', key: randomUUID(), input: null }
    // No other owner has it yet, and the error does not say so.
    const late = once.run(pay, { ...call, leaseMs: 50, inProgressMaxMs: 100 })
    await expect(late).rejects.toThrow(/^This attempt no longer owns its record: it took too long, or/)
    const worker = completer(once, { graceMs: 1 })
    await waitUntil('a worker has taken it', async () => (await worker.runOnce()).done === 1)
    expect(heard.of('reconcile_resolved')).toMatchObject([{ id: { key: call.key }, state: 'completed' }])
  })
})

describe('an operation that stops', () => {
  const call = () => ({ account: 'acct_1', key: randomUUID(), input: null })

  test('at an error of the database tells observers which step and why, and its caller only that nothing was applied', async () => {
    const heard = makeRecorder()
    const once = shop.open({ observe: heard })
    const pay = operation('told.refused', async (op: Op) => {
      await op.transaction('created', async () => 1)
      await op.transaction('booked', (tx) =>
        tx.query('INSERT INTO told_no_such_table VALUES (4242424242424242)'),
      )
    })
    const asked = call()
    const error = await catchError(once.run(pay, asked))
    expect(`${error} ${JSON.stringify(error)}`).not.toContain('told_no_such_table')
    const failure = { code: '42P01', message: expect.stringContaining('"told_no_such_table"') }
    const id = { operation: 'told.refused', key: asked.key }
    expect(heard.of('operation_failed')).toMatchObject([{ id, step: 'booked', failure }])
  })

  test('because a call was not executed tells the cause', async () => {
    const heard = makeRecorder()
    const once = shop.open({ observe: heard })
    const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    const pay = operation('told.not_executed', (op: Op) =>
      op.call('charged', { call: () => Promise.reject(notExecuted(refused)) }),
    )
    await catchError(once.run(pay, { ...call(), deadlineMs: 300 }))
    expect(heard.of('operation_failed')).toMatchObject([{ step: 'charged' }])
    expect(heard.of('operation_failed')[0]!.failure.message).toContain('ECONNREFUSED')
  })
})

test('the error of invalid() has the status that clients are answered', () => {
  expect(invalid({ status: 422 }).status).toBe(422)
  expect(invalid().status).toBe(400)
})

describe('a route whose keys belong to the account as a whole', () => {
  const policy = { account: () => 'acct_1', operation: 'told.refunds', scope: 'account' } as const
  const handle = () => Response.json({}, { status: 201 })

  test('cannot have a recover that is never asked', () => {
    const once = shop.open({ recover: { 'told.refunds': async () => ({ status: 'cannot_tell' }) } })
    expect(() => idempotent(once, policy, handle)).toThrow(/recover of told.refunds .* scope/)
  })

  test('explain says where its records are', async () => {
    const once = shop.open()
    const key = randomUUID()
    const headers = { 'Idempotency-Key': key }
    await idempotent(once, policy, handle)(new Request('http://localhost/', { method: 'POST', headers }))
    const { state, next } = await once.explain({ account: 'acct_1', operation: 'told.refunds', key })
    expect(state).toBe('none')
    expect(next).toMatch(/under the operation any/)
  })
})
