import type { Onlyonce, RecordId } from 'onlyonce'
import { type Operator, operator } from 'onlyonce/operator'
import { outbox } from 'onlyonce/outbox'
import type { PostgresTx } from 'onlyonce/postgres'
import type { Worker } from 'onlyonce/workers'
import type pg from 'pg'
import { inTransaction } from '../database/in-transaction.ts'
import { LIMITS } from '../limits.ts'
import { giveUp } from './giving-up.ts'
import type { expirePaymentWith } from './let-go.ts'
import type { Settling } from './reservations.ts'
import { type PaymentRow, presentPayment, withoutMetadata } from './rows.ts'
import * as sql from './sql-unsettled.ts'
import { parkTaken } from './taken.ts'
import { releaseHeld, settleTold, type Told } from './told.ts'

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
  const nextPage = pagesOf(pool, sql.DUE_PAYMENTS, [0])
  return {
    name: 'payments.expirer',
    async runOnce() {
      const { rows, more } = await nextPage()
      const expire = ({ account, id, capture_before: captureBefore }: Row) =>
        once.run(operations.expirePayment, {
          account,
          key: `expire:${id}:${captureBefore}`,
          input: { payment: id },
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
export function marker({ once, pool }: Doors): Worker {
  const settling = settlingOf(once)
  const desk = operator(once)
  const mark = (account: string, id: string) =>
    inTransaction(pool, async (tx) => {
      const row = (await tx.query(sql.MARK_UNKNOWN, [account, id])).rows[0] as PaymentRow | undefined
      if (row === undefined) return
      const told = { aggregate: `payment:${id}` }
      await settling(account).emit(tx, 'payment.unknown', withoutMetadata(presentPayment(row)), told)
    })
  const look = async (row: Row) => {
    const { account, id } = row
    const record = { account, operation: 'payments.create', key: row.idempotency_key! }
    // Over, and not settled: an operator has given the reply, who alone knows why; or it is gone, or another request's by now.
    const { state, told } = await storyOf(desk, record, row.since_ms)
    const inDoubt = state === 'unknown' || state === 'parked'
    if (inDoubt) await parkTaken(desk, pool, record, 'payments.marker')
    if (inDoubt || told !== null) await mark(account, id)
    else if (isOver(state)) {
      await inTransaction(pool, (tx) => releaseHeld(tx, settling(account), record, row))
    }
  }
  const nextPage = pagesOf(pool, sql.UNSETTLED_PAYMENTS)
  return {
    name: 'payments.marker',
    everyMs: LIMITS.unsettledLookEveryMs,
    async runOnce() {
      const { rows, more } = await nextPage()
      await each(rows, look)
      return { done: rows.length, more }
    },
  }
}

/** One that fails keeps no other from its turn, and is told when all were tried: the oldest comes first at every run. */
async function each(rows: readonly Row[], work: (row: Row) => Promise<void>): Promise<void> {
  const failed: unknown[] = []
  for (const row of rows) await work(row).catch((error) => failed.push(error))
  if (failed.length > 0) throw failed[0]
}

/**
 * Gives back what captures, refunds and cancellations hold that were proved not to have been executed and whose clients did not
 * come back: their records end in the same commit. Where a record is gone already, nobody can come back. Where an operator gave
 * the reply elsewhere than at /ops, that is what happened, and it is settled and posted so.
 */
export function sweeper({ once, pool }: Doors): Worker {
  const lists = [sql.UNSETTLED_CAPTURES, sql.UNSETTLED_REFUNDS, sql.UNSETTLED_CLOSINGS].map((text) =>
    pagesOf(pool, text),
  )
  const desk = operator(once)
  const settling = settlingOf(once)
  const sweep = async (row: Row) => {
    const { account, operation, key, since_ms: sinceMs, abandoned } = row
    const record = { account, operation: operation!, key: key! }
    const { state, told } = await storyOf(desk, record, sinceMs)
    const by = settling(account)
    if (state === 'unknown' || state === 'parked') await parkTaken(desk, pool, record, 'payments.sweeper')
    else if (state === 'retryable') {
      // The worker that lets go of what was due comes back by itself.
      if (!abandoned || operation === 'payments.expire') return
      await inTransaction(pool, async (tx) => {
        if (await giveUp(tx, desk, record, 'payments.sweeper')) await releaseHeld(tx, by, record, row)
      })
    } else if (isOver(state)) {
      await inTransaction(pool, async (tx) => {
        if (told === null) await releaseHeld(tx, by, record, row)
        else if (told.executed !== null)
          await settleTold(tx, by, record, { ...told, gateway_id: null } as Told)
      })
    }
  }
  return {
    name: 'payments.sweeper',
    everyMs: LIMITS.reservationLookEveryMs,
    async runOnce() {
      const ran = { done: 0, more: false }
      const failed: unknown[] = []
      for (const nextPage of lists) {
        const { rows, more } = await nextPage()
        // One that fails keeps no other, and is told when all were tried.
        for (const row of rows) await sweep(row).catch((error) => failed.push(error))
        ran.done += rows.length
        ran.more ||= more
      }
      if (failed.length > 0) throw failed[0]
      return ran
    },
  }
}

/** Nobody works on such a record, and nobody can come back to what it was. */
function isOver(state: string): boolean {
  return state === 'none' || state === 'expired' || state === 'completed'
}

/**
 * What became of a record, and what an operator has told of it since. Asked for in this order: a decision is there when what it
 * decided can be seen. `executed` is null where the reply is gone that would say so.
 */
async function storyOf(desk: Operator, record: RecordId, sinceMs: number) {
  const { state } = await desk.show(record)
  const { audit, reply } = await desk.show(record, { reply: true })
  const decided = audit.some(
    ({ action, from, at }) => action === 'resolve' && from !== 'retryable' && at >= sinceMs,
  )
  const executed = state === 'completed' && reply !== null ? reply.status < 300 : null
  return { state, told: decided ? { executed } : null }
}

/** Whose books are settled in, and how that is told, outside of an operation. */
export function settlingOf(once: Onlyonce<PostgresTx>): (account: string) => Settling {
  const { emit } = outbox(once)
  return (account) => ({
    account,
    emit: async (tx, type, payload, options) => void (await emit(tx, { account, type, payload, ...options })),
  })
}

interface Row {
  readonly account: string
  readonly id: string
  readonly place: string
  readonly since_ms: number
  /** For so long that its client is presumed not to come back. */
  readonly abandoned: boolean
  readonly operation?: string
  readonly key?: string
  readonly idempotency_key?: string
  readonly capture_before?: string
}

/**
 * Reads a list page by page, and after its last page from the start again. The oldest may be those that nobody can end now: the
 * next run looks behind them.
 */
function pagesOf(
  pool: pg.Pool,
  text: string,
  ages: readonly number[] = [LIMITS.unsettledAfterSeconds, LIMITS.reservationAfterSeconds],
) {
  const { workerBatchMax } = LIMITS
  const [ageSeconds, ...abandoned] = ages
  let last: Row | undefined
  return async () => {
    const after = [last?.place, last?.account, last?.id]
    const { rows } = await pool.query<Row>(text, [ageSeconds, workerBatchMax, ...after, ...abandoned])
    const more = rows.length === workerBatchMax
    last = more ? rows.at(-1) : undefined
    return { rows, more }
  }
}
