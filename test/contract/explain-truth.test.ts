import { beforeAll, describe, expect, test } from 'vitest'
import { notExecuted, operation, reply } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { addEvidence, reconciler } from '../../src/workers/index.ts'
import { catchError, leaveEffect, makeCall, openShop, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

const lost = () => {
  throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
}
const refused = () => {
  throw notExecuted(new Error('nobody listens'))
}

/** One call behind a step, or none, that goes wrong in its own way each time. */
function chargeWith(name: string, answers: (call: number) => unknown, options: { row?: boolean } = {}) {
  let calls = 0
  return operation(name, async (op) => {
    if (options.row) await op.transaction('row', (tx) => leaveEffect(tx, op.key))
    const charge = await op.call('charged', {
      call: async () => {
        calls += 1
        return answers(calls)
      },
    })
    return op.transaction('settled', async (tx) => {
      await leaveEffect(tx, `${op.key} settled`)
      return reply(201, { charge })
    })
  })
}

function idOf(name: string) {
  const { account, key } = makeCall()
  return { account, operation: name, key }
}

/** The record of a handler that is in doubt. */
async function leaveUnknown(name: string, kind = 'h') {
  const id = idOf(name)
  await shop.open().execute({ ...id, input: {} }, async () => 1)
  await shop.observer.query(
    `UPDATE onlyonce.records SET state = 'unknown', error_code = 'owner_vanished', expires_at = NULL, reply_status = NULL,
       look_at = now(), looks = 0, kind = $2 WHERE key = $1`,
    [id.key, kind],
  )
  return id
}

describe('explain', () => {
  test('says which call is in doubt, and not only that the last one was not executed', async () => {
    const once = shop.open()
    const charge = chargeWith('doubt.first', (call) => (call === 1 ? lost() : refused()))
    const id = idOf('doubt.first')
    const result = await once.run(charge, { account: id.account, key: id.key, input: {} })
    expect(result).toMatchObject({ outcome: 'unknown' })
    const { why } = await once.explain(id)
    expect(why).toContain('An earlier call may have been carried out; it said: ECONNRESET: socket hang up')
    expect(why).toContain('The last call said: not_executed: nobody listens')
    expect(why).not.toContain('Send the same request')
  })

  test('never says that nothing happened where a step is committed', async () => {
    const once = shop.open()
    const charge = chargeWith('doubt.row', refused, { row: true })
    const id = idOf('doubt.row')
    const error = await catchError(once.run(charge, { account: id.account, key: id.key, input: {} }))
    expect(error).toMatchObject({ code: 'unfinished' })
    const told = await once.explain(id)
    expect(told.state).toBe('retryable')
    expect(told.why).toContain('Its steps up to row are durable.')
    expect(told.why).not.toMatch(/nothing happened|no effect/)
    expect(told.next).toContain('goes on behind the last durable step')
  })

  test('says of an operation without a step that its attempt had no effect', async () => {
    const once = shop.open()
    const charge = chargeWith('doubt.none', refused)
    const id = idOf('doubt.none')
    await catchError(once.run(charge, { account: id.account, key: id.key, input: {} }))
    expect((await once.explain(id)).why).toContain('had no effect')
  })

  test('takes no record for no proof, and names the operations of this account that have the key', async () => {
    const once = shop.open()
    const call = makeCall({ operation: 'POST /charges' })
    await once.execute(call, async () => 1)
    await once.execute({ ...call, operation: 'POST /refunds' }, async () => 1)
    await once.execute({ ...call, account: 'acct_2', operation: 'POST /secrets' }, async () => 1)
    const told = await once.explain({ account: call.account, operation: 'charges', key: call.key })
    expect(told).toMatchObject({ state: 'none', elsewhere: ['POST /charges', 'POST /refunds'] })
    expect(told.why).toContain('no proof that nothing happened')
    expect(told.why).toContain('POST /charges, POST /refunds')
    expect(JSON.stringify(told)).not.toContain('secrets')
    const other = { account: 'acct_3', operation: 'charges', key: call.key }
    expect(await once.explain(other)).toMatchObject({ elsewhere: [] })
  })

  test('says when a look is due and who makes it, not that somebody looks', async () => {
    const once = shop.open()
    const charge = chargeWith('doubt.look', lost)
    const id = idOf('doubt.look')
    await once.run(charge, { account: id.account, key: id.key, input: {} })
    expect((await once.explain(id)).next).toMatch(/The next look is due in \d+ s; a worker \(startWorkers\)/)
    await shop.observer.query('UPDATE onlyonce.records SET look_at = now() WHERE key = $1', [id.key])
    expect((await once.explain(id)).next).toContain(
      'The next look is due now; a worker (startWorkers) makes it.',
    )
  })
})

describe('where nobody observes', () => {
  test('a record that is parked is a warning of the process: of an operation, and of a handler', async () => {
    const warned: string[] = []
    const note = (warning: Error) => void warned.push(`${warning.name} ${warning.message}`)
    process.on('warning', note)
    const once = shop.open({ reconcileAfterMs: [] })
    const [parked, handled] = [idOf('warned.operation'), await leaveUnknown('warned.handler')]
    const charge = chargeWith('warned.operation', lost)
    await once.run(charge, { account: parked.account, key: parked.key, input: {} })
    expect(await once.execute({ ...handled, input: {} }, async () => 2)).toMatchObject({ outcome: 'parked' })
    // Warnings are told in the next turn.
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', note)
    const told = warned.filter((warning) => warning.startsWith('OnlyonceParkedWarning'))
    expect(told.map((warning) => warning.split(':')[0])).toEqual([
      'OnlyonceParkedWarning warned.operation',
      'OnlyonceParkedWarning warned.handler',
    ])
    expect(told[0]).toContain('socket hang up')
    expect(told.join()).not.toContain(parked.key)
  })
})

describe('the list of one key', () => {
  test('needs an account, finds it under every operation and in every state, and nothing of others', async () => {
    const once = shop.open()
    const desk = operator(once)
    const call = makeCall({ operation: 'list.a' })
    await once.execute(call, async () => 1)
    await catchError(
      once.execute({ ...call, operation: 'list.b' }, async () => Promise.reject(notExecuted())),
    )
    await once.execute({ ...call, account: 'acct_2' }, async () => 1)
    const { items: records, cursor } = await desk.list({ account: call.account, key: call.key })
    expect(records.map(({ operation, state }) => [operation, state])).toEqual([
      ['list.a', 'completed'],
      ['list.b', 'retryable'],
    ])
    expect(cursor).toBe(null)
    const first = await desk.list({ account: call.account, key: call.key, limit: 1 })
    const second = await desk.list({ account: call.account, key: call.key, limit: 1, cursor: first.cursor! })
    expect([first, second].map((page) => page.items[0]?.operation)).toEqual(['list.a', 'list.b'])
    expect(await desk.list({ account: call.account, key: call.key, states: ['parked'] })).toEqual({
      items: [],
      cursor: null,
    })
    expect(await catchError(desk.list({ key: call.key }))).toMatchObject({ code: 'option_invalid' })
  })
})

describe('who settled it', () => {
  const signed = { by: 'ann', why: 'seen in the books' }

  test('an operator, or recover: each is told as such', async () => {
    const found = { status: 'found', reply: { status: 201, body: '1' } } as const
    const once = shop.open({ recover: { 'settle.recover': () => found } })
    const byOperator = await leaveUnknown('settle.operator')
    await operator(once).resolve(byOperator, { ...signed, reply: { status: 201 } })
    const byRecover = await leaveUnknown('settle.recover', 'c')
    expect(await once.execute({ ...byRecover, input: {} }, async () => 2)).toMatchObject({ value: 1 })
    const told = await Promise.all([once.explain(byOperator), once.explain(byRecover)])
    expect(told.map(({ settledBy }) => settledBy)).toEqual(['operator', 'recover'])
    expect(told[0]!.why).toContain('An operator settled it')
    expect(told[1]!.why).toContain('recover found the reply')
    for (const { why } of told) expect(why).not.toContain('by an operator or by recover')
  })

  test('a retry that an operator allows is told as a decision, and not as a proof', async () => {
    const once = shop.open()
    const id = await leaveUnknown('settle.allowed')
    await operator(once).resolve(id, { ...signed, allowRetry: true })
    const told = await once.explain(id)
    expect(told).toMatchObject({ state: 'retryable', settledBy: 'operator' })
    expect(told.why).toMatch(/^An operator decided/)
  })

  test('what is given up is audited as that, also where an earlier version has noted it', async () => {
    const once = shop.open()
    const desk = operator(once)
    const id = idOf('settle.given-up')
    await catchError(once.execute({ ...id, input: {} }, async () => Promise.reject(notExecuted())))
    const refusal = await catchError(desk.resolve(id, { ...signed, allowRetry: true }))
    expect(refusal.message).toContain('use giveUp')
    await desk.giveUp(id, { ...signed, reply: { status: 410 } })
    const shown = await desk.show(id)
    expect(shown.audit).toMatchObject([{ action: 'give_up', from: 'retryable', to: 'completed' }])
    expect(shown.why).toContain('An operator gave it up')
    await shop.observer.query(
      `INSERT INTO onlyonce.audit (account, operation, key, seq, at, decided_by, why, action, from_state, to_state, fence)
       VALUES ($1, $2, $3, 2, now(), 'ann', 'earlier', 'resolve', 'retryable', 'completed', 1)`,
      [id.account, id.operation, id.key],
    )
    expect((await desk.show(id)).audit.map(({ action }) => action)).toEqual(['give_up', 'give_up'])
  })

  test('a call that was made is told by evidence, and the rest of the operation runs', async () => {
    const once = shop.open({ reconcileAfterMs: [] })
    const charge = chargeWith('settle.evidence', lost)
    const id = idOf('settle.evidence')
    await once.run(charge, { account: id.account, key: id.key, input: {} })
    const desk = operator(once)
    const { record, next } = await desk.show(id)
    expect(record?.state).toBe('parked')
    expect(next).toContain(record!.waitsFor)
    expect(next).toContain('addEvidence')
    await addEvidence(once, { account: id.account, key: record!.waitsFor!, result: 'ch_42' })
    await desk.unpark(id, signed)
    await reconciler(once).runOnce()
    expect(await once.run(charge, { account: id.account, key: id.key, input: {} })).toMatchObject({
      outcome: 'replayed',
      value: { charge: 'ch_42' },
    })
    expect(await shop.countEffects(`${id.key} settled`)).toBe(1)
  })
})
