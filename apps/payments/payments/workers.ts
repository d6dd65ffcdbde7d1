import { type Onlyonce, outbox, type PostgresTx, type Worker } from 'onlyonce'
import type pg from 'pg'
import { inTransaction } from '../database/in-transaction.ts'
import { LIMITS } from '../limits.ts'
import type { expirePaymentWith } from './let-go.ts'
import { type DeclineView, type PaymentRow, presentPayment } from './rows.ts'
import * as sql from './sql.ts'

interface Doors {
  readonly once: Onlyonce<PostgresTx>
  readonly pool: pg.Pool
}

interface Operations {
  readonly operations: { readonly expirePayment: ReturnType<typeof expirePaymentWith> }
}

/**
 * Lets go of payments whose authorization has run out. Any number of processes may: the key of the operation is that of the
 * payment and its date, so one of them does it and the others are told what became of it.
 */
export function expirer({ once, pool, operations }: Doors & Operations): Worker {
  return {
    name: 'payments.expirer',
    async runOnce() {
      const { rows } = await pool.query(sql.DUE_PAYMENTS, [LIMITS.worker_batch_max])
      const expire = ({ account, id, capture_before }: Record<string, string>) =>
        once.run(operations.expirePayment, {
          account: account!,
          key: `expire:${id}:${capture_before}`,
          input: { payment: id! },
        })
      // One that fails is tried again by the next run, and keeps no other.
      await Promise.allSettled(rows.map(expire))
      return { done: rows.length, more: false }
    },
  }
}

/**
 * Tells what became of payments that are unsettled for a while. One whose outcome nobody knows is shown as `unknown`; whoever
 * finds out settles it. One whose record is gone was proved not to have been executed, and nobody can come back to it.
 */
export function marker(doors: Doors): Worker {
  const { once, pool } = doors
  const { emit } = outbox(once)
  const change = (text: string, values: unknown[], type: string) =>
    inTransaction(pool, async (tx) => {
      const row = (await tx.query(text, values)).rows[0] as PaymentRow | undefined
      if (row === undefined) return
      const { account, id } = row
      await emit(tx, { account, type, payload: presentPayment(row), aggregate: `payment:${id}` })
    })
  let after: string | null = null
  return {
    name: 'payments.marker',
    every_ms: LIMITS.unsettled_look_every_ms,
    async runOnce() {
      const values = [LIMITS.unsettled_after_seconds, after, LIMITS.worker_batch_max]
      const { rows } = await pool.query(sql.UNSETTLED_PAYMENTS, values)
      for (const { account, id, status, idempotency_key: key } of rows) {
        if (status !== 'processing') continue
        const { state } = await once.explain({ account, operation: 'payments.create', key })
        // Completed, and not settled: an operator has given the reply, who alone knows why.
        if (state === 'unknown' || state === 'parked' || state === 'completed')
          await change(sql.MARK_UNKNOWN, [account, id], 'payment.unknown')
        if (state === 'none' || state === 'expired')
          await change(sql.DROP_PAYMENT, [account, id, NOT_EXECUTED], 'payment.failed')
      }
      const more = rows.length === LIMITS.worker_batch_max
      // The oldest may be those that nobody can settle: the next run looks behind them, and then from the start again.
      after = more ? rows.at(-1).created_at : null
      return { done: rows.length, more }
    },
  }
}

/**
 * Gives back what captures, refunds and cancellations have reserved that were proved not to have been executed and whose
 * clients never came back. As long as the record is there they may; when it is gone, the same key is a new request.
 */
export function sweeper({ once, pool }: Doors): Worker {
  return {
    name: 'payments.sweeper',
    every_ms: LIMITS.reservation_look_every_ms,
    async runOnce() {
      const values = [LIMITS.reservation_after_seconds, LIMITS.worker_batch_max]
      const { rows } = await pool.query(sql.UNSETTLED_RESERVATIONS, values)
      for (const { kind, account, payment, id, operation, key } of rows) {
        const { state } = await once.explain({ account, operation, key })
        if (state !== 'none' && state !== 'expired') continue
        if (kind === 'capture') await pool.query(sql.DROP_CAPTURE, [account, payment, id, NOT_EXECUTED])
        else if (kind === 'refund') await pool.query(sql.DROP_REFUND, [account, payment, id, NOT_EXECUTED])
        else await pool.query(sql.DROP_CLOSING, [account, payment, `${operation} ${key}`])
      }
      return { done: rows.length, more: false }
    },
  }
}

const NOT_EXECUTED = JSON.stringify({
  code: 'not_executed',
  decline_code: null,
  advice: 'try_again_later',
  message: 'The processor could not be reached, and the request was not repeated.',
} satisfies DeclineView)
