/** What a person has found out about a request that no program could finish. */
import type { OperationReply, Queryable, RecordId } from 'onlyonce'
import type { Authorized, Captured, Decline, Refunded, Voided } from '../gateway/index.ts'
import { settleCapture } from './capture.ts'
import { settlePayment } from './create.ts'
import { NOT_EXECUTED } from './giving-up.ts'
import { settleLettingGo } from './let-go.ts'
import { settleRefund } from './refund.ts'
import { dropCapture, dropClosing, dropRefund, type Settling } from './reservations.ts'
import { type PaymentRow, presentPayment, withoutMetadata } from './rows.ts'
import * as sql from './sql-unsettled.ts'

/** It happened at the processor, under this name there; or it did not. */
export type Told =
  | {
      readonly executed: true
      readonly gateway_id: string | null
      readonly capture_before?: string | null
      /** What it was compared with: the payment, the capture or the refund that the request held then. */
      readonly held?: string
    }
  | { readonly executed: false }

/** What a request holds, by the key of its record. */
export interface Holding {
  readonly payment: string
  /** Of the capture, the refund, or the payment itself. */
  readonly id: string
  readonly amount: number
  readonly currency: string
  readonly final: boolean
  readonly gateway_id: string | null
  readonly capture_method: PaymentRow['capture_method']
  /** Of the payment, so far. */
  readonly captured: number
}

const HOLDINGS: Readonly<Record<string, string>> = {
  'payments.create': sql.HELD_BY_CREATE,
  'payments.capture': sql.HELD_BY_CAPTURE,
  'refunds.create': sql.HELD_BY_REFUND,
  'payments.cancel': sql.HELD_BY_CLOSING,
  'payments.expire': sql.HELD_BY_CLOSING,
}

/**
 * Settles what a request holds and posts to the ledger what happened, in the transaction of the decision. The reply that the
 * request would have had. Null where it holds nothing: then nothing follows from the decision.
 */
export async function settleTold(
  tx: Queryable,
  by: Settling,
  record: RecordId,
  told: Told,
): Promise<OperationReply<unknown> | null> {
  const held = await findHeld(tx, record, told.executed ? told.held : null)
  if (held === null) return null
  const { payment, id, amount, currency, final } = held
  switch (record.operation) {
    case 'payments.create':
      return await settlePayment(tx, by, payment, told.executed ? authorizedBy(held, told) : NOTHING_HAPPENED)
    case 'payments.capture': {
      const reserved = { capture: id, amount, currency, final }
      return await settleCapture(
        tx,
        by,
        payment,
        reserved,
        told.executed ? capturedBy(held, told) : NOTHING_HAPPENED,
      )
    }
    case 'refunds.create': {
      const reserved = { refund: id, amount, currency }
      return await settleRefund(
        tx,
        by,
        payment,
        reserved,
        told.executed ? refundedBy(held, told) : NOTHING_HAPPENED,
      )
    }
    default: {
      const why = record.operation === 'payments.expire' ? 'expired' : 'canceled'
      return await settleLettingGo(
        tx,
        by,
        payment,
        told.executed ? voidedBy(held, told) : NOTHING_HAPPENED,
        why,
      )
    }
  }
}

export type Found = Extract<Told, { readonly executed: true }>

/** What a processor calls it, or else the payment that it is of. */
const nameOf = (held: Holding, { gateway_id: gatewayId }: Found) => gatewayId ?? held.gateway_id ?? ''

function authorizedBy(held: Holding, found: Found): Authorized {
  const { amount, currency, capture_method: captureMethod } = held
  const automatic = captureMethod === 'automatic'
  return {
    status: automatic ? 'captured' : 'authorized',
    gateway_id: nameOf(held, found),
    amount,
    currency,
    capture_before: automatic ? null : (found.capture_before ?? null),
  }
}

function capturedBy(held: Holding, found: Found): Captured {
  return { status: 'captured', gateway_id: nameOf(held, found), amount: held.amount, currency: held.currency }
}

function refundedBy({ amount, currency }: Holding, { gateway_id: gatewayId }: Found): Refunded {
  return { status: 'refunded', gateway_id: gatewayId ?? '', amount, currency }
}

function voidedBy(held: Holding, found: Found): Voided {
  return { status: 'voided', gateway_id: nameOf(held, found) }
}

/** The step of an operation that asks the processor; undefined for one that asks none. */
export const callStepOf = (operation: string): string | undefined => CALLS[operation]?.step

/** The step that asks the processor, and what it gives where it was carried out. */
const CALLS: Readonly<Record<string, { step: string; resultOf: (held: Holding, found: Found) => unknown }>> =
  {
    'payments.create': { step: 'authorized', resultOf: authorizedBy },
    'payments.capture': { step: 'captured', resultOf: capturedBy },
    'refunds.create': { step: 'refunded', resultOf: refundedBy },
    'payments.cancel': { step: 'voided', resultOf: voidedBy },
    'payments.expire': { step: 'voided', resultOf: voidedBy },
  }

/** What a person has found at the processor, as its adapter would have returned it. Null where the request holds nothing. */
export async function evidenceFor(
  tx: Queryable,
  record: RecordId,
  found: Found | { readonly declined: string | null },
): Promise<{ readonly step: string; readonly result: unknown } | null> {
  const held = await findHeld(tx, record)
  const call = CALLS[record.operation]
  if (held === null || call === undefined) return null
  if (!('declined' in found)) return { step: call.step, result: call.resultOf(held, found) }
  const { declined } = found
  return { step: call.step, result: { ...NOTHING_HAPPENED, code: 'declined', message: declined ?? DECLINED } }
}

const DECLINED = 'An operator has found out that the processor declined it.'

/** One of several things that requests with one key have left, as a list of a worker shows it. */
export interface Listed {
  readonly id: string
  /** Since when it has been so. */
  readonly place: string
}

/** Lets go of what a request holds that was proved not to have been executed, and to which nobody can come back any more. */
export async function releaseHeld(
  tx: Queryable,
  by: Settling,
  record: RecordId,
  listed: Listed | null = null,
): Promise<void> {
  const held = await findHeld(tx, record, listed?.id)
  if (held === null) return
  const { payment, id } = held
  switch (record.operation) {
    case 'payments.create': {
      const { rows } = await tx.query(sql.DROP_PAYMENT, [by.account, payment, NOT_EXECUTED])
      const view = presentPayment(rows[0] as PaymentRow)
      await by.emit(tx, 'payment.failed', withoutMetadata(view), { aggregate: `payment:${payment}` })
      return
    }
    case 'payments.capture':
      return await dropCapture(tx, by, payment, id)
    case 'refunds.create':
      return await dropRefund(tx, by, payment, id)
    default:
      return await dropClosing(tx, by, payment, `${record.operation} ${record.key}`, listed?.place)
  }
}

/** The payment is locked, so that nobody else settles it meanwhile. */
export async function findHeld(
  tx: Queryable,
  { account, operation, key }: RecordId,
  id: string | null = null,
): Promise<Holding | null> {
  const text = HOLDINGS[operation]
  if (text === undefined) return null
  const name = text === sql.HELD_BY_CLOSING ? `${operation} ${key}` : key
  const { rows } = await tx.query(text, [account, name, id])
  return (rows[0] as Holding | undefined) ?? null
}

const NOTHING_HAPPENED: Decline = {
  status: 'declined',
  gateway_id: null,
  code: 'not_executed',
  decline_code: null,
  advice: 'try_again_later',
  message: 'An operator has found out that the processor did not carry it out.',
}
