import { type Gateways, paymentOperations } from './payments/index.ts'

/** Everything that moves money, given the processors to move it with. */
export function operationsOf(gateways: Gateways) {
  return { ...paymentOperations(gateways) }
}

export type ServiceOperations = ReturnType<typeof operationsOf>
