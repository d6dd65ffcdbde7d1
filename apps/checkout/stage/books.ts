import { derivedKey } from 'onlyonce/keys'
import type { Processor } from './processor.ts'

/** A line of the processor's journal, as the page shows it. */
export interface BookedRow {
  readonly kind: string
  readonly payment: string
  readonly amount: number
  readonly currency: string
  readonly at: string
}

/** What the processor knows about keys of the page. */
export interface Books {
  /** What it has really moved. */
  readonly rows: readonly BookedRow[]
  /** How often it was asked, and what became of each: `executed`, `replayed`, or null where its answer was not taken. */
  readonly requests: readonly (string | null)[]
}

/** Looks up what the processor has booked for payments with these keys. The service asks it with keys that it derives from them. */
export async function booksOf(
  processor: Processor,
  account: string,
  keys: readonly string[],
): Promise<Books> {
  const derived = keys.map((key) =>
    derivedKey({ account, operation: 'payments.create', key, step: 'authorized' }),
  )
  const [journal, ...seen] = await Promise.all([
    processor.journal(),
    ...derived.map((key) => processor.requests(key)),
  ])
  return {
    rows: journal
      .filter(({ key }) => key !== null && derived.includes(key))
      .map(({ kind, payment_intent, amount, currency, at }) => ({
        kind,
        payment: payment_intent,
        amount,
        currency: currency.toUpperCase(),
        at: new Date(at).toISOString(),
      })),
    requests: seen.flat().map(({ outcome }) => outcome),
  }
}
