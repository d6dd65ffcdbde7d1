import type { Outbox } from 'onlyonce'
import { type Gateways, paymentOperations } from './payments/index.ts'
import { makeCreateTransfer } from './transfers/index.ts'

/** Everything that moves money, given the processors to move it with, and where it is told. */
export function operationsOf(gateways: Gateways, outbox: Outbox) {
  return { ...paymentOperations(gateways), createTransfer: makeCreateTransfer(outbox) }
}

export type ServiceOperations = ReturnType<typeof operationsOf>
