import type { Queryable } from 'onlyonce'
import { reverse } from '../ledger/index.ts'

interface Release {
  readonly account: string
  readonly payment: string
  /** The capture that has taken it, or the payment that is let go of. */
  readonly source: string
  readonly amount: number
}

/** The ledger no longer has so much of a payment as held. */
export async function releaseHeld(
  tx: Queryable,
  { account, payment, source, amount }: Release,
): Promise<void> {
  const of = { kind: 'authorization', source: payment }
  await reverse(tx, { account, kind: 'release', source, of, amount })
}
