import type { Store } from '../store/contract.ts'
import { refuseNewWork } from './lapsed.ts'
import type { TransactionRequest } from './transaction.ts'

/**
 * Whether a request would begin to run, by its record: there is none, or one that may run again. Claims nothing, so another
 * may come first. What is in progress has begun already, also where its owner vanished and another goes on with it.
 */
export async function wouldRun<Tx>(
  store: Pick<Store<Tx>, 'look'>,
  { id, matches, lapsed }: Pick<TransactionRequest, 'id' | 'matches' | 'lapsed'>,
): Promise<boolean> {
  const record = (await store.look(id))?.record ?? null
  refuseNewWork(lapsed, record?.state ?? 'none')
  if (record === null || record.state === 'expired') return true
  return record.state === 'retryable' && matches(record.fingerprint)
}
