import type { Outbox } from 'onlyonce/outbox'
import { type PaymentDoors, paymentOperations } from './payments/index.ts'
import { makeCreateTransfer } from './transfers/index.ts'

/** Everything that moves money, given what it is moved with, and where it is told. */
export function operationsOf(doors: PaymentDoors, outbox: Outbox) {
  return { ...paymentOperations(doors), createTransfer: makeCreateTransfer(outbox) }
}

export type ServiceOperations = ReturnType<typeof operationsOf>
