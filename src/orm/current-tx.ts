import { OnlyonceError } from '../core/errors.ts'
import { running } from '../store/postgres/current-tx.ts'
import type { PostgresTx } from '../store/postgres/index.ts'

/**
 * The transaction of the protected request in whose function this is called, for layers that cannot be handed `tx`. Only with `postgres({ currentTx: true })`. Throws where no
 * protected transaction runs (`current_tx_missing`), and where it is over (`transaction_over`), so that nothing is written elsewhere unnoticed.
 *
 * @example
 * class Transfers {
 *   create = (input: NewTransfer) => drizzle(poolOf(currentTx())).insert(transfers).values(input)
 * }
 */
export function currentTx(): PostgresTx {
  const tx = running.getStore()
  if (tx === undefined) throw new OnlyonceError('current_tx_missing')
  if (tx.over) throw new OnlyonceError('transaction_over')
  return tx
}
