import fc from 'fast-check'
import type pg from 'pg'
import { beforeAll, expect, it } from 'vitest'
import { openLedger, transact } from '../test/ledger.ts'
import {
  authorizationLines,
  balances,
  captureLines,
  checkpoint,
  post,
  refundLines,
  reverse,
  transferInLines,
  transferOutLines,
  verify,
} from './index.ts'

const money = fc.record({
  amount: fc.integer({ min: 1, max: 99_999_999 }),
  currency: fc.constantFrom('EUR', 'JPY', 'KWD'),
})
const account = fc.constantFrom('a', 'b', 'c')
const movement = fc.oneof(
  { weight: 4, arbitrary: fc.record({ what: fc.constant('pay' as const), account, money }) },
  {
    weight: 3,
    arbitrary: fc.record({ what: fc.constant('hold' as const), account, money, part: fc.nat(4) }),
  },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('refund' as const), account, money }) },
  {
    weight: 2,
    arbitrary: fc.record({ what: fc.constant('transfer' as const), account, to: account, money }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ what: fc.constant('checkpoint' as const), entriesMin: fc.constantFrom(1, 3) }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('rolled_back' as const), account, money }) },
)
type Movement = typeof movement extends fc.Arbitrary<infer T> ? T : never

/** The plainest ledger there is. */
class Model {
  readonly #sums = new Map<string, { available: bigint; pending: bigint }>()

  add(account: string, currency: string, what: 'available' | 'pending', amount: number): void {
    const id = `${account} ${currency}`
    const sums = this.#sums.get(id) ?? { available: 0n, pending: 0n }
    this.#sums.set(id, { ...sums, [what]: sums[what] + BigInt(amount) })
  }

  of(account: string) {
    return [...this.#sums]
      .filter(([id]) => id.startsWith(`${account} `))
      .map(([id, sums]) => ({ currency: id.slice(account.length + 1), ...sums }))
      .sort((a, b) => (a.currency < b.currency ? -1 : 1))
  }
}

let pool: pg.Pool
let runs = 0
beforeAll(async () => {
  pool = await openLedger({ max: 3 })
})

/** Does the same to the ledger and to the model. */
async function play(step: Movement, source: string, model: Model, prefix: string): Promise<void> {
  const state = 'posted' as const
  if (step.what === 'checkpoint') {
    await checkpoint(pool, { entriesMin: step.entriesMin })
    return
  }
  const account = `${prefix}${step.account}`
  const { amount, currency } = step.money
  switch (step.what) {
    case 'pay':
      await post(pool, { account, kind: 'capture', source, state, lines: captureLines(step.money) })
      return model.add(account, currency, 'available', amount)
    case 'hold': {
      const hold = { kind: 'authorization', source }
      await post(pool, { account, ...hold, state: 'pending', lines: authorizationLines(step.money) })
      model.add(account, currency, 'pending', amount)
      const part = Math.floor((amount * step.part) / 4)
      if (part === 0) return
      await transact(pool, async (tx) => {
        await reverse(tx, {
          account,
          kind: 'release',
          source,
          of: hold,
          ...(part < amount && { amount: part }),
        })
        const taken = { amount: part, currency }
        await post(tx, { account, kind: 'capture', source, state, lines: captureLines(taken) })
      })
      model.add(account, currency, 'pending', -part)
      return model.add(account, currency, 'available', part)
    }
    case 'refund':
      await post(pool, { account, kind: 'refund', source, state, lines: refundLines(step.money) })
      return model.add(account, currency, 'available', -amount)
    case 'transfer': {
      const to = `${prefix}${step.to}`
      await post(pool, { account, kind: 'transfer_out', source, state, lines: transferOutLines(step.money) })
      await post(pool, {
        account: to,
        kind: 'transfer_in',
        source,
        state,
        lines: transferInLines(step.money),
      })
      model.add(account, currency, 'available', -amount)
      return model.add(to, currency, 'available', amount)
    }
    case 'rolled_back': {
      const posting = { account, kind: 'capture', source, state, lines: captureLines(step.money) }
      const failing = transact(pool, async (tx) => {
        await post(tx, posting)
        throw new Error('on purpose')
      })
      await expect(failing).rejects.toThrow('on purpose')
      return
    }
    default:
      return step satisfies never
  }
}

it('derived balances are those of a model, whatever moves, with and without checkpoints', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(movement, { minLength: 1, maxLength: 25 }), async (steps) => {
      const model = new Model()
      const prefix = `acct_${++runs}_`
      for (const [i, step] of steps.entries()) await play(step, `src_${runs}_${i}`, model, prefix)
      for (const name of ['a', 'b', 'c']) {
        expect(await balances(pool, `${prefix}${name}`)).toEqual(model.of(`${prefix}${name}`))
      }
    }),
    { numRuns: 40 },
  )
  expect(await verify(pool)).toMatchObject({ ok: true, in_flight: [] })
})
