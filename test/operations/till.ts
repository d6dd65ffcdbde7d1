import { randomUUID } from 'node:crypto'
import type { Found, Op, Operation } from '../../src/index.ts'
import { operation, reply } from '../../src/index.ts'
import { leaveEffect } from '../contract/shop.ts'

export interface Charge {
  readonly id: string
  readonly amount: number
}

export type Behaviour = 'answer' | 'lose' | 'refuse' | 'hang'

/** A processor inside the test: it counts what it does, and can be told how to answer and what to find. */
export interface Till {
  readonly charges: { readonly key: string; readonly id: string }[]
  calls: number
  looks: number
  idempotent: boolean
  behaviour: Behaviour
  lookup: 'truth' | 'not_found' | 'pending' | 'away'
  charge(amount: number, key: string): Promise<Charge>
  find(key: string): Promise<Found<Charge>>
}

export function makeTill(changes: Partial<Pick<Till, 'idempotent' | 'behaviour' | 'lookup'>> = {}): Till {
  const charges: Till['charges'] = []
  return {
    charges,
    calls: 0,
    looks: 0,
    idempotent: true,
    behaviour: 'answer',
    lookup: 'truth',
    ...changes,
    async charge(amount, key) {
      this.calls += 1
      if (this.behaviour === 'refuse') throw new Error('it refused, but nobody knows why')
      const known = this.idempotent ? charges.find((charge) => charge.key === key) : undefined
      const id = known?.id ?? `ch_${charges.length + 1}`
      if (known === undefined) charges.push({ key, id })
      if (this.behaviour === 'lose') throw new Error('socket hang up')
      if (this.behaviour === 'hang') await new Promise(() => {})
      return { id, amount }
    },
    async find(key) {
      this.looks += 1
      if (this.lookup === 'away') throw new Error('nobody there')
      if (this.lookup !== 'truth') return { status: this.lookup }
      const known = charges.find((charge) => charge.key === key)
      return known === undefined
        ? { status: 'not_found' }
        : { status: 'found', result: { id: known.id, amount: 5 } }
    },
  }
}

export interface PayOptions {
  readonly name?: string
  readonly visibleWithinMs?: number
  readonly keyLifetimeMs?: number
  readonly timeoutMs?: number
  /** Called between the steps. */
  readonly between?: (op: Op, place: 'created' | 'charged') => Promise<void>
  /** Runs inside the last step. */
  readonly settling?: () => void
}

/** Write, call, write: a payment. */
export function payWith(
  till: Till,
  options: PayOptions = {},
): Operation<{ amount: number }, { id: string; charge: string }> {
  const { name = 'payments.create', between = async () => {}, settling = () => {}, ...limits } = options
  return operation(name, async (op, input: { amount: number }) => {
    const payment = await op.transaction('payment_created', async (tx) => {
      await leaveEffect(tx, `${op.key} created`)
      return { id: `pay_${op.key}` }
    })
    await between(op, 'created')
    const charge = await op.call('charged', {
      idempotent: till.idempotent,
      ...limits,
      call: ({ key }) => till.charge(input.amount, key),
      find: ({ key }) => till.find(key),
    })
    await between(op, 'charged')
    return op.transaction('settled', async (tx) => {
      await leaveEffect(tx, `${op.key} settled`)
      settling()
      return reply(201, { id: payment.id, charge: charge.id })
    })
  })
}

export const payment = () => ({ account: 'acct_1', key: randomUUID(), input: { amount: 5 } })

/** Bounds with which an owner that does nothing is given up at once. */
export const SHORT = { leaseMs: 200, inProgressMaxMs: 200 } as const

/** Waits for ever at one place, the first time that it comes there: its owner is gone for good. */
export function abandonAt(place: 'created' | 'charged'): NonNullable<PayOptions['between']> {
  let first = true
  return async (_, here) => {
    if (here !== place || !first) return
    first = false
    await new Promise(() => {})
  }
}
