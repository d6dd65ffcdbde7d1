import type { Queryable } from 'onlyonce'
import { type EmitCall, outbox } from 'onlyonce/outbox'
import { inTransaction } from '../database/in-transaction.ts'
import type { Gateway, Movement } from '../gateway/index.ts'
import { LIMITS } from '../limits.ts'
import type { Service } from '../service.ts'
import { type Comparison, compare, mergeComparisons, type OwnMovement } from './compare.ts'
import { type Kept, keepRun } from './keep.ts'
import { ownMovements } from './own.ts'
import { KNOWN_ACCOUNTS, NOW } from './sql.ts'

const DAY_MS = 24 * 3_600_000
/** Events in one statement. */
const EMIT_BATCH_MAX = 500

export interface ReconcileOptions {
  /** From the first moment up to, and without, the last. */
  readonly from: Date
  readonly to: Date
  /** Decides what is old. Default: the database's clock. */
  readonly now?: Date
  /** Ends the reading. */
  readonly signal?: AbortSignal
  /** Asked in the transaction that keeps what was found: throws where somebody else does that by now. */
  readonly guard?: (tx: Queryable) => Promise<void>
}

export interface Reconciled {
  /** Of the processor and mode, such as `stripe:live`. */
  readonly books: string
  readonly comparison: Comparison
  /** How many differences were told for the first time. */
  readonly fresh: number
}

/**
 * Compares our books with a processor's, day by day, keeps what was found, and tells what is new of it as events
 * `reconciliation.difference`, in one transaction for each day.
 *
 * @example
 * const { comparison } = await reconcile(service, gateway, { from, to })
 */
export async function reconcile(
  service: Pick<Service, 'pool' | 'once'>,
  gateway: Gateway,
  options: ReconcileOptions,
): Promise<Reconciled> {
  const days = daysOf(options)
  const comparisons: Comparison[] = []
  let fresh = 0
  for (const day of days) {
    const found = await reconcileDay(service, gateway, { ...options, ...day })
    comparisons.push(found.comparison)
    fresh += found.fresh
  }
  return { books: booksOf(gateway), comparison: mergeComparisons(comparisons), fresh }
}

/** Not of any account: what a processor has that nobody here knows is kept and told under this name. */
export function booksOf({ name, mode }: Pick<Gateway, 'name' | 'mode'>): string {
  return `${name}:${mode}`
}

async function reconcileDay(
  { pool, once }: Pick<Service, 'pool' | 'once'>,
  gateway: Gateway,
  { from, to, now, signal, guard }: ReconcileOptions,
): Promise<{ readonly comparison: Comparison; readonly fresh: number }> {
  const books = booksOf(gateway)
  const began: string = (await pool.query(NOW)).rows[0].now
  const readAt = now ?? new Date(began)
  const { theirs, ours } = await readBoth(pool, gateway, { from, to, began, ...(signal && { signal }) })
  const comparison = compare(ours, theirs, { from, to, now: readAt })
  const accounts = await knownAccounts(pool, gateway, comparison)
  const fresh = await inTransaction(pool, async (tx) => {
    await guard?.(tx)
    const kept = await keepRun(tx, { books, from, to, comparison, readAt, accounts })
    for (const events of eventsOf(books, kept)) await outbox(once).emit(tx, events)
    return kept.fresh.length
  })
  return { comparison, fresh }
}

/**
 * A payment is written down here before the processor is asked, and may be sent to it for as long as the processor remembers
 * its key: so it can be that much younger there, and never older but for the clocks.
 */
async function readBoth(
  pool: Queryable,
  gateway: Gateway,
  given: { readonly from: Date; readonly to: Date; readonly began: string; readonly signal?: AbortSignal },
): Promise<{ readonly theirs: Movement[]; readonly ours: OwnMovement[] }> {
  const { from, to, began, signal } = given
  const skewMs = LIMITS.reconcileSkewMs
  const laterMs = gateway.keyLifetimeMs + skewMs
  const range = { from: earlier(from, skewMs), to: later(to, laterMs), ...(signal && { signal }) }
  const theirs = (await collect(gateway.movements(range))).map(storable)
  signal?.throwIfAborted()
  const ownRange = { from: earlier(from, laterMs), to: later(to, skewMs), theirReadingBegan: began }
  return { theirs, ours: await collect(ownMovements(pool, gateway, ownRange)) }
}

async function collect<T>(movements: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = []
  for await (const movement of movements) {
    if (collected.length === LIMITS.reconcileMovementsMax) {
      throw new Error(`There are more than ${LIMITS.reconcileMovementsMax} movements in one day.`)
    }
    collected.push(movement)
  }
  return collected
}

/** Others who have the processor's key may have written what no jsonb takes: a day with that would never be kept. */
function storable(movement: Movement): Movement {
  const mend = (text: string | null) => text?.replace(/[\0\u{d800}-\u{dfff}]/gu, '\uFFFD') ?? null
  return { ...movement, account: mend(movement.account), reference: mend(movement.reference) }
}

/** Those that the processor names and that are ours, in this mode. */
async function knownAccounts(
  pool: Queryable,
  { mode }: Gateway,
  { missing_here: missingHere }: Comparison,
): Promise<ReadonlySet<string>> {
  const named = new Set(missingHere.flatMap(({ theirs }) => theirs.account ?? []))
  const possible = [...named].filter((account) => account.endsWith(`:${mode}`))
  if (possible.length === 0) return new Set()
  const { rows } = await pool.query(KNOWN_ACCOUNTS, [possible])
  return new Set(rows.map(({ account }) => account as string))
}

/** In batches of one account each, always in the same order. */
function* eventsOf(books: string, { id: run, fresh }: Kept): Generator<EmitCall[]> {
  const byAccount = new Map<string, EmitCall[]>()
  for (const { account, difference } of fresh) {
    const { kind } = (difference.ours ?? difference.theirs)!
    const payload = { object: 'reconciliation_difference', books, run, kind, ...difference }
    const events = byAccount.get(account) ?? []
    events.push({ account, type: 'reconciliation.difference', payload })
    byAccount.set(account, events)
  }
  for (const account of [...byAccount.keys()].sort()) {
    const events = byAccount.get(account)!
    for (let i = 0; i < events.length; i += EMIT_BATCH_MAX) yield events.slice(i, i + EMIT_BATCH_MAX)
  }
}

/** Cut at midnight in UTC. */
function daysOf({ from, to }: Pick<ReconcileOptions, 'from' | 'to'>): { from: Date; to: Date }[] {
  if (!(from < to)) throw new Error('The time to reconcile ends before it begins.')
  const days: { from: Date; to: Date }[] = []
  for (let at = from; at < to; ) {
    const midnight = new Date((Math.floor(at.getTime() / DAY_MS) + 1) * DAY_MS)
    const end = midnight < to ? midnight : to
    days.push({ from: at, to: end })
    if (days.length > LIMITS.reconcileDaysMax) {
      throw new Error(`At most ${LIMITS.reconcileDaysMax} days are reconciled at once.`)
    }
    at = end
  }
  return days
}

function earlier(time: Date, ms: number): Date {
  return new Date(time.getTime() - ms)
}

function later(time: Date, ms: number): Date {
  return new Date(time.getTime() + ms)
}
