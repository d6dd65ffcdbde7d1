import type { Engine } from '../engine.ts'
import { OnlyonceError } from '../errors.ts'
import type { Outcome, TransactionRequest } from '../protect/transaction.ts'
import { alreadyAnswered } from './invalid.ts'

/** The client wants nothing to begin any more. What was begun before is answered as ever: that starts nothing. */
export async function begunBefore<Tx>(engine: Engine<Tx>, request: TransactionRequest): Promise<Outcome> {
  const known = await alreadyAnswered(engine, request)
  if (typeof known === 'string') throw new OnlyonceError('deadline_exceeded', { detail: NOT_BEGUN })
  return known
}

const NOT_BEGUN = 'It passed before the request could begin.'
