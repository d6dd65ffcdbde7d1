import { completer } from 'onlyonce/workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { waitUntil } from '../../../test/setup/wait.ts'
import { makeId } from '../ids.ts'
import { abandonAt, interrupted, openTill, type Till, transferCall } from '../test/transfers.ts'
import { findTransfer, presentTransfer, type Transfer } from './index.ts'

let till: Till
beforeAll(async () => {
  till = await openTill()
})

/** What the accounts have, and what is on its way between them. */
async function books(from: string, to: string) {
  return {
    from: await till.available(from),
    to: await till.available(to),
    in_transit: await till.inTransit(from, to),
  }
}

describe('a transfer', () => {
  it('moves money once, and both sides hear of it', async () => {
    const [from, to] = [await till.addAccount(100), await till.addAccount(5)]
    const call = transferCall(from, to, 30)
    const first = await till.once.run(till.createTransfer, call)
    const transfer = first.outcome === 'executed' ? (first.value as Transfer) : null
    expect(first).toMatchObject({
      outcome: 'executed',
      status: 201,
      value: {
        id: expect.stringMatching(/^trf_/),
        destination: to,
        amount: 30,
        currency: 'EUR',
        reference: 'rent',
        metadata: { flat: '3' },
        status: 'succeeded',
        failure_code: null,
      },
    })
    expect(await till.once.run(till.createTransfer, call)).toMatchObject({
      outcome: 'replayed',
      value: transfer,
    })
    expect(await books(from, to)).toEqual({ from: 70, to: 35, in_transit: 0 })
    expect(await till.events(from)).toEqual(['transfer.succeeded'])
    expect(await till.events(to)).toEqual(['transfer.received'])

    const row = await findTransfer(till.pool, call.account, transfer!.id)
    expect(presentTransfer(row!)).toEqual(transfer)
    expect(await findTransfer(till.pool, `${to}:test`, transfer!.id)).toBeNull()
    expect(await findTransfer(till.pool, `${from}:live`, transfer!.id)).toBeNull()
    expect(await findTransfer(till.pool, call.account, 'trf_\u0000')).toBeNull()
  })

  it('tells the receiver nothing of the sender but who and what', async () => {
    const [from, to] = [await till.addAccount(10), await till.addAccount(0)]
    await till.once.run(till.createTransfer, transferCall(from, to, 10))
    const { rows } = await till.pool.query('SELECT payload FROM onlyonce.events WHERE account = $1', [
      `${to}:test`,
    ])
    expect(rows.map(({ payload }) => JSON.parse(payload))).toEqual([
      {
        id: expect.stringMatching(/^trf_/),
        source: from,
        amount: 10,
        currency: 'EUR',
        reference: 'rent',
        created_at: expect.stringMatching(/Z$/),
      },
    ])
  })

  it('is refused where the balance does not cover it, in its own currency', async () => {
    const [from, to] = [await till.addAccount(20), await till.addAccount(0)]
    for (const changes of [{ amount: 21 }, { amount: 5, currency: 'USD' }]) {
      const call = transferCall(from, to, 0, changes)
      const refused = { status: 422, value: { code: 'balance_insufficient', field: 'amount' } }
      expect(await till.once.run(till.createTransfer, call)).toMatchObject({
        outcome: 'executed',
        ...refused,
      })
      expect(await till.once.run(till.createTransfer, call)).toMatchObject({
        outcome: 'replayed',
        ...refused,
      })
    }
    expect(await books(from, to)).toEqual({ from: 20, to: 0, in_transit: 0 })
    expect(await till.events(from)).toEqual([])
  })

  it('comes back where nobody receives it', async () => {
    const from = await till.addAccount(20)
    const nobody = makeId('acct')
    const call = transferCall(from, nobody, 15)
    const refused = { status: 422, value: { code: 'destination_unknown', field: 'destination' } }
    expect(await till.once.run(till.createTransfer, call)).toMatchObject({ outcome: 'executed', ...refused })
    expect(await till.once.run(till.createTransfer, call)).toMatchObject({ outcome: 'replayed', ...refused })
    expect(await books(from, nobody)).toEqual({ from: 20, to: 0, in_transit: 0 })
    expect(await till.events(from)).toEqual(['transfer.failed'])
    const { rows } = await till.pool.query(
      'SELECT status, failure_code FROM payments.transfers WHERE account = $1',
      [call.account],
    )
    expect(rows).toEqual([{ status: 'failed', failure_code: 'destination_unknown' }])
  })

  it.each([
    ['itself', (from: string) => from],
    ['another mode', (_: string, to: string) => `${to}:live`],
    ['its own mode', (_: string, to: string) => `${to}:test`],
    ['no account', () => 'somebody'],
  ])('to %s is refused before anything moves', async (_, destinationOf) => {
    const [from, to] = [await till.addAccount(20), await till.addAccount(0)]
    const result = await till.once.run(till.createTransfer, transferCall(from, destinationOf(from, to), 5))
    expect(result).toMatchObject({ status: 422, value: { code: 'destination_unknown' } })
    const { rows } = await till.pool.query(
      'SELECT count(*)::int AS count FROM payments.ledger_transactions WHERE account = $1',
      [`${from}:test`],
    )
    expect(rows).toEqual([{ count: 1 }])
  })

  it.each(['credited', 'settled'])('that cannot be %s is undone on both sides, once', async (step) => {
    const [from, to] = [await till.addAccount(20), await till.addAccount(1)]
    const broken = interrupted(till.createTransfer, async (here) => {
      if (here === step) throw new Error('a mistake of ours')
    })
    const call = transferCall(from, to, 15)
    const once = till.open()
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await expect(once.run(broken, call)).rejects.toMatchObject({ code: 'handler_failed' })
    }
    expect(await books(from, to)).toEqual({ from: 20, to: 1, in_transit: 0 })
    expect(await till.events(from)).toEqual(['transfer.failed'])
    const heard = step === 'settled' ? ['transfer.received', 'transfer.recalled'] : []
    expect(await till.events(to)).toEqual(heard)
  })
})

describe('a crash', () => {
  const SHORT = { leaseMs: 500, inProgressMaxMs: 500 }
  const NOW = { graceMs: 1, leaseMs: 5_000, inProgressMaxMs: 5_000 }

  it.each(['credited', 'settled'])('before it is %s: another process moves the money once', async (step) => {
    const [from, to] = [await till.addAccount(100), await till.addAccount(0)]
    const createTransfer = interrupted(till.createTransfer, abandonAt(step))
    const call = transferCall(from, to, 40)
    await expect(till.open().run(createTransfer, { ...call, ...SHORT })).rejects.toMatchObject({
      code: 'lease_lost',
    })
    // It has left, and may have arrived: what has not is on its way.
    expect(await books(from, to)).toEqual(
      step === 'settled' ? { from: 60, to: 40, in_transit: 0 } : { from: 60, to: 0, in_transit: -40 },
    )
    const doors = [till.open([till.createTransfer]), till.open([till.createTransfer])]
    const workers = doors.map((once) => completer(once, NOW))
    await waitUntil('somebody has finished it', async () => {
      await Promise.all(workers.map((worker) => worker.runOnce()))
      return (await till.events(from)).length > 0
    })
    expect(await till.once.run(till.createTransfer, call)).toMatchObject({ outcome: 'replayed', status: 201 })
    expect(await books(from, to)).toEqual({ from: 60, to: 40, in_transit: 0 })
    expect(await till.events(from)).toEqual(['transfer.succeeded'])
    expect(await till.events(to)).toEqual(['transfer.received'])
  })

  it('before it is undone: the retry brings the money back once', async () => {
    const from = await till.addAccount(100)
    const createTransfer = interrupted(till.createTransfer, abandonAt('undo'))
    const call = transferCall(from, makeId('acct'), 40)
    await expect(till.open().run(createTransfer, { ...call, ...SHORT })).rejects.toMatchObject({
      code: 'lease_lost',
    })
    expect(await till.available(from)).toBe(60)
    await waitUntil('the retry is answered', async () => {
      const result = await till.once.run(till.createTransfer, call)
      return 'status' in result && result.status === 422
    })
    expect(await till.available(from)).toBe(100)
    expect(await till.events(from)).toEqual(['transfer.failed'])
  })
})

describe('fifty at once', () => {
  it('never overdraw', async () => {
    const [from, to] = [await till.addAccount(100), await till.addAccount(0)]
    const doors = [till.once, till.open()]
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) => doors[i % 2]!.run(till.createTransfer, transferCall(from, to, 7))),
    )
    const statuses = results.map((result) => ('status' in result ? result.status : result.outcome))
    expect(statuses.filter((status) => status === 201)).toHaveLength(14)
    expect(statuses.filter((status) => status === 422)).toHaveLength(36)
    expect(await books(from, to)).toEqual({ from: 2, to: 98, in_transit: 0 })
  })

  it('in a circle lose nothing and wait for nobody for ever', async () => {
    const circle = await Promise.all([1, 2, 3].map(() => till.addAccount(100)))
    const results = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        till.once.run(till.createTransfer, transferCall(circle[i % 3]!, circle[(i + 1) % 3]!, 10)),
      ),
    )
    expect(results.every((result) => 'status' in result && result.status === 201)).toBe(true)
    expect(await Promise.all(circle.map((id) => till.available(id)))).toEqual([100, 100, 100])
    expect(await till.inTransit(...circle)).toBe(0)
  })
})
