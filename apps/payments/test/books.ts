import { expect } from 'vitest'
import type { FreshDatabase } from '../../../test/setup/database.ts'
import type { GatewayProcess, JournalEntry } from '../../gateway/index.ts'

const POSTED = `
SELECT e.currency, sum(e.amount)::float8 AS amount
FROM payments.ledger_entries e JOIN payments.ledger_transactions t ON t.account = e.account AND t.id = e.transaction
WHERE t.state = 'posted' AND e.ledger_account = 'gateway' GROUP BY e.currency`

const PAYMENTS = `
SELECT gateway_id, captured::float8, refunded::float8 FROM payments.payments WHERE captured > 0 ORDER BY gateway_id`

/** What the ledger says that the processor owes us is what the processor's own journal says, payment by payment too. */
export async function verifyLedger(database: FreshDatabase, gateway: GatewayProcess): Promise<void> {
  const pool = database.pool({ max: 1 })
  const journal = await gateway.journal()
  const posted = new Map<string, number>()
  for (const { currency, amount } of (await pool.query(POSTED)).rows)
    if (amount !== 0) posted.set(currency, amount)
  expect(posted).toEqual(sumBy(journal, ({ currency }) => currency.toUpperCase()))
  const ours = (await pool.query(PAYMENTS)).rows.map((row) => [row.gateway_id, row.captured - row.refunded])
  const theirs = [...sumBy(journal, ({ payment_intent: paymentIntent }) => paymentIntent, true)].sort()
  expect(ours).toEqual(theirs)
}

/** What was taken, less what was given back. */
function sumBy(
  journal: readonly JournalEntry[],
  nameOf: (entry: JournalEntry) => string,
  withZeros = false,
): Map<string, number> {
  const sums = new Map<string, number>()
  for (const entry of journal) {
    const sign = entry.kind === 'capture' ? 1 : entry.kind === 'refund' ? -1 : 0
    if (sign !== 0) sums.set(nameOf(entry), (sums.get(nameOf(entry)) ?? 0) + sign * entry.amount)
  }
  return new Map([...sums].filter(([, sum]) => sum !== 0 || withZeros))
}
