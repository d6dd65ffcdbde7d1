import type { History, Movement, PaymentRow } from './history.ts'

/** Rule 1: at most one charge for an account and a key, and no charge that the service does not know. */
export function onceCharged({ journal, database }: History): string[] {
  const payments = new Map(database.payments.map((row) => [`${row.account} ${row.id}`, row]))
  const found: string[] = []
  const charges = new Map<string, string[]>()
  for (const move of journal.filter(isCharge)) {
    const payment = payments.get(`${move.metadata.account} ${move.metadata.payment}`)
    if (payment === undefined) {
      found.push(`The processor charged ${move.payment_intent} for a payment that the service does not have.`)
      continue
    }
    const name = `${payment.account} ${payment.idempotency_key}`
    charges.set(name, [...(charges.get(name) ?? []), move.payment_intent])
  }
  for (const [name, intents] of charges) {
    if (intents.length > 1) found.push(`${name} was charged ${intents.length} times: ${intents.join(', ')}.`)
  }
  return [...found, ...partsOnce(database), ...keysOnce(database.payments)]
}

/** A payment that holds or takes money. A capture of money that was held before is a part of one, no new charge. */
function isCharge(move: Movement): boolean {
  return move.kind === 'authorization' || (move.kind === 'capture' && move.capture_method === 'automatic')
}

/** One capture and one refund for each key. */
function partsOnce({ captures, refunds }: History['database']): string[] {
  return [captures, refunds].flatMap((rows) => {
    const done = rows.filter(({ status }) => status === 'succeeded')
    return repeated(
      done.map(
        ({ account, payment, idempotency_key: idempotencyKey }) => `${account} ${payment} ${idempotencyKey}`,
      ),
    ).map((name) => `Two captures or refunds stand under one key: ${name}.`)
  })
}

function keysOnce(payments: readonly PaymentRow[]): string[] {
  const paid = payments.filter(({ status }) => status !== 'failed')
  return repeated(
    paid.map(({ account, idempotency_key: idempotencyKey }) => `${account} ${idempotencyKey}`),
  ).map((name) => `Two payments stand under one key: ${name}.`)
}

function repeated(names: readonly string[]): string[] {
  const seen = new Set<string>()
  return names.filter((name) => {
    if (seen.has(name)) return true
    seen.add(name)
    return false
  })
}

interface Sums {
  held: number
  taken: number
  returned: number
}

/** What the processor moved for each payment intent. */
function sumsOf(journal: readonly Movement[]): Map<string, Sums> {
  const sums = new Map<string, Sums>()
  for (const { kind, payment_intent: paymentIntent, amount, capture_method: captureMethod } of journal) {
    const sum = sums.get(paymentIntent) ?? { held: 0, taken: 0, returned: 0 }
    if (kind === 'authorization' || (kind === 'capture' && captureMethod === 'automatic')) sum.held += amount
    if (kind === 'capture') sum.taken += amount
    if (kind === 'refund') sum.returned += amount
    sums.set(paymentIntent, sum)
  }
  return sums
}

/** Rule 4: captured is at most authorized, refunded at most captured, and the service says the same of each payment. */
export function sumsHold({ journal, database }: History): string[] {
  const sums = sumsOf(journal)
  const found: string[] = []
  for (const [intent, { held, taken, returned }] of sums) {
    if (taken > held) found.push(`${intent}: ${taken} was captured of ${held}.`)
    if (returned > taken) found.push(`${intent}: ${returned} was refunded of ${taken}.`)
  }
  for (const { id, gateway_id: gatewayId, captured, refunded, status } of database.payments) {
    if (gatewayId === null || UNSETTLED.has(status)) continue
    const { taken, returned } = sums.get(gatewayId) ?? { taken: 0, returned: 0 }
    // A part that is parked may have been moved at the processor: the ledger rule looks at the whole of it.
    if (captured > taken) found.push(`${id} says captured ${captured}, the processor took ${taken}.`)
    if (refunded > returned)
      found.push(`${id} says refunded ${refunded}, the processor returned ${returned}.`)
  }
  return found
}

const UNSETTLED: ReadonlySet<string> = new Set(['processing', 'unknown'])

/**
 * Rule 5: the ledger comes to zero and equals the journal. What is parked is left out on both sides: an operator decides
 * about it, and until then the processor may have moved what the ledger does not show.
 */
export function ledgerEqualsJournal({ journal, database }: History): string[] {
  const found: string[] = []
  const zero = new Map<string, number>()
  for (const { transaction, currency, amount } of database.entries) {
    const name = `${transaction} ${currency}`
    zero.set(name, (zero.get(name) ?? 0) + amount)
  }
  for (const [name, sum] of zero) if (sum !== 0) found.push(`Ledger transaction ${name} comes to ${sum}.`)

  const open = openIntents(database, journal)
  const journalNet = new Map<string, number>()
  for (const { kind, payment_intent: paymentIntent, currency, amount, metadata } of journal) {
    if (open.has(paymentIntent)) continue
    const account = metadata.account ?? accountOf(paymentIntent, journal)
    if (kind === 'capture') add(journalNet, `${account} ${currency.toUpperCase()}`, amount)
    if (kind === 'refund') add(journalNet, `${account} ${currency.toUpperCase()}`, -amount)
  }
  const bookedNet = ledgerNet(database, open)
  for (const name of new Set([...journalNet.keys(), ...bookedNet.keys()])) {
    const [moved, booked] = [journalNet.get(name) ?? 0, bookedNet.get(name) ?? 0]
    if (moved !== booked) found.push(`${name}: the processor moved ${moved}, the ledger says ${booked}.`)
  }
  return found
}

/** Payments about which an operator still has to decide something. */
function openIntents(database: History['database'], journal: readonly Movement[]): ReadonlySet<string> {
  const unsettled = new Set([
    ...database.payments
      .filter(({ status }) => UNSETTLED.has(status))
      .map(({ account, id }) => `${account} ${id}`),
    ...[...database.captures, ...database.refunds]
      .filter(({ status }) => status === 'processing')
      .map(({ account, payment }) => `${account} ${payment}`),
  ])
  const intents = new Set<string>()
  for (const { account, id, gateway_id: gatewayId } of database.payments) {
    if (unsettled.has(`${account} ${id}`) && gatewayId !== null) intents.add(gatewayId)
  }
  for (const { metadata, payment_intent: paymentIntent } of journal) {
    if (unsettled.has(`${metadata.account} ${metadata.payment}`)) intents.add(paymentIntent)
  }
  return intents
}

function accountOf(intent: string, journal: readonly Movement[]): string {
  return (
    journal.find(
      ({ payment_intent: paymentIntent, metadata }) => paymentIntent === intent && metadata.account,
    )?.metadata.account ?? '?'
  )
}

/** What the ledger says the processor owes, by account and currency, without the payments that are open. */
function ledgerNet(database: History['database'], open: ReadonlySet<string>): Map<string, number> {
  const net = new Map<string, number>()
  for (const { account, ledger_account: ledgerAccount, currency, amount, state } of database.entries) {
    if (ledgerAccount === 'gateway' && state === 'posted') add(net, `${account} ${currency}`, amount)
  }
  // The ledger has one line for each capture and refund, named by payment: take away those of open payments.
  for (const { account, gateway_id: gatewayId, captured, refunded, currency } of database.payments) {
    if (gatewayId !== null && open.has(gatewayId)) add(net, `${account} ${currency}`, refunded - captured)
  }
  return net
}

function add(sums: Map<string, number>, name: string, amount: number): void {
  sums.set(name, (sums.get(name) ?? 0) + amount)
}
