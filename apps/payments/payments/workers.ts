import { type Onlyonce, operator, outbox, type PostgresTx, type Worker } from 'onlyonce'
import type pg from 'pg'
import { inTransaction } from '../database/in-transaction.ts'
import { LIMITS } from '../limits.ts'
import { NOT_EXECUTED } from './giving-up.ts'
import type { expirePaymentWith } from './let-go.ts'
import { type PaymentRow, presentPayment } from './rows.ts'
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
  const nextPage = pagesOf(pool, sql.DUE_PAYMENTS, 0)
  return {
    name: 'payments.expirer',
    async runOnce() {
      const { rows, more } = await nextPage()
      const expire = ({ account, id, capture_before }: Record<string, string>) =>
        once.run(operations.expirePayment, {
          account: account!,
          key: `expire:${id}:${capture_before}`,
          input: { payment: id! },
        })
      // One that fails is tried again by the next run, and keeps no other.
      await Promise.allSettled(rows.map(expire))
      return { done: rows.length, more }
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
  const desk = operator(once)
  const change = (text: string, values: unknown[], type: string) =>
    inTransaction(pool, async (tx) => {
      const row = (await tx.query(text, values)).rows[0] as PaymentRow | undefined
      if (row === undefined) return
      const { account, id } = row
      await emit(tx, { account, type, payload: presentPayment(row), aggregate: `payment:${id}` })
    })
  const nextPage = pagesOf(pool, sql.UNSETTLED_PAYMENTS, LIMITS.unsettled_after_seconds)
  return {
    name: 'payments.marker',
    every_ms: LIMITS.unsettled_look_every_ms,
    async runOnce() {
      const { rows, more } = await nextPage()
      for (const row of rows) {
        if (row.status !== 'processing') continue
        const [account, id, key] = [row.account!, row.id!, row.idempotency_key!]
        const record = { account, operation: 'payments.create', key }
        const { state } = await once.explain(record)
        const over = state === 'none' || state === 'expired' || state === 'completed'
        // Over, and not settled: an operator has given the reply, who alone knows why; or it is gone, or another request's by now.
        // Asked for afterwards: a decision is there when what it decided can be seen.
        const told = over && (await desk.show(record)).audit.some(({ action }) => action === 'resolve')
        if (state === 'unknown' || state === 'parked' || told)
          await change(sql.MARK_UNKNOWN, [account, id], 'payment.unknown')
        else if (over) await change(sql.DROP_PAYMENT, [account, id, NOT_EXECUTED], 'payment.failed')
      }
      return { done: rows.length, more }
    },
  }
}

/**
 * Gives back what captures, refunds and cancellations have reserved that were proved not to have been executed and whose
 * clients never came back. As long as the record is there they may; when it is gone, the same key is a new request. Where an
 * operator gave the reply, nothing is proved: it stays reserved, and what was told is put right by hand.
 */
export function sweeper({ once, pool }: Doors): Worker {
  const age_seconds = LIMITS.reservation_after_seconds
  const lists = [
    { nextPage: pagesOf(pool, sql.UNSETTLED_CAPTURES, age_seconds), drop: sql.DROP_CAPTURE },
    { nextPage: pagesOf(pool, sql.UNSETTLED_REFUNDS, age_seconds), drop: sql.DROP_REFUND },
    { nextPage: pagesOf(pool, sql.UNSETTLED_CLOSINGS, age_seconds), drop: null },
  ]
  const desk = operator(once)
  const sweep = async ({ account, payment, id, operation, key }: Row, drop: string | null) => {
    const { state, audit } = await desk.show({ account: account!, operation: operation!, key: key! })
    if (state !== 'none' && state !== 'expired') return
    if (audit.some(({ action }) => action === 'resolve')) return
    if (drop !== null) await pool.query(drop, [account, payment, id, NOT_EXECUTED])
    else await pool.query(sql.DROP_CLOSING, [account, payment, `${operation} ${key}`])
  }
  return {
    name: 'payments.sweeper',
    every_ms: LIMITS.reservation_look_every_ms,
    async runOnce() {
      const ran = { done: 0, more: false }
      for (const { nextPage, drop } of lists) {
        const { rows, more } = await nextPage()
        for (const row of rows) await sweep(row, drop)
        ran.done += rows.length
        ran.more ||= more
      }
      return ran
    },
  }
}

type Row = Readonly<Record<string, string>>

/**
 * Reads a list page by page, and after its last page from the start again. The oldest may be those that nobody can end now: the
 * next run looks behind them.
 */
function pagesOf(pool: pg.Pool, text: string, age_seconds: number) {
  const { worker_batch_max } = LIMITS
  let last: Row | undefined
  return async () => {
    const after = [last?.place, last?.account, last?.id]
    const { rows } = await pool.query<Row>(text, [age_seconds, worker_batch_max, ...after])
    const more = rows.length === worker_batch_max
    last = more ? rows.at(-1) : undefined
    return { rows, more }
  }
}
