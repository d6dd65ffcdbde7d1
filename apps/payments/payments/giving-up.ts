import { OnlyonceError, type OperationReply, type Queryable, type RecordId } from 'onlyonce'
import type { Operator } from 'onlyonce/operator'
import { problemReply } from '../problems.ts'
import type { DeclineView } from './rows.ts'

/**
 * Ends a request that was proved not to have been executed, in the transaction in which what it holds is given to others:
 * then nobody resumes it behind them. False where somebody is at work on it, or nobody knows what became of it.
 */
export async function giveUp(tx: Queryable, desk: Operator, record: RecordId, by: string): Promise<boolean> {
  const reply = givenReply(problemReply('request_given_up'))
  try {
    const { givenUp } = await desk.giveUp(record, {
      by,
      why: 'It was not executed, and others need what it holds.',
      reply,
      tx,
    })
    return givenUp
  } catch (error) {
    if (error instanceof OnlyonceError && error.code === 'record_changed') return false
    throw error
  }
}

/** The reply of an operation, as an operator gives it. */
export function givenReply({ status, headers, body }: OperationReply<unknown>) {
  return {
    status,
    headers: { 'content-type': 'application/json; charset=utf-8', ...headers },
    body: JSON.stringify(body),
  }
}

/** Why a payment, a capture or a refund has failed that was never executed. */
export const NOT_EXECUTED = JSON.stringify({
  code: 'not_executed',
  decline_code: null,
  advice: 'try_again_later',
  message: 'The processor could not be reached, and the request was not repeated.',
} satisfies DeclineView)
