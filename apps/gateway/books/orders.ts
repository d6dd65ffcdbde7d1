import { randomBytes } from 'node:crypto'
import { conflict, invalidRequest, missing } from '../http/failure.ts'
import type { ParameterMap } from '../http/form.ts'
import {
  boolean,
  currency,
  expand,
  metadata,
  oneOf,
  positive,
  readParameters,
  required,
  text,
  tolerated,
} from '../http/parameters.ts'
import type { JournalEntry } from '../wire.ts'
import { CARDS } from './cards.ts'
import type { Books, Intent } from './index.ts'
import { presentIntent } from './present.ts'

/** What a request adds to what it asks for. */
type Moved = Omit<JournalEntry, 'at' | 'key' | 'nonce' | 'request' | 'fingerprint'>

/** A request that was read and is sound in itself. Carrying it out asks the books, and may still be refused by them. */
export interface Order {
  readonly metadata: Readonly<Record<string, string>>
  carryOut(books: Books, nonce: string): Moved
}

/** Stripe takes eight digits, and twelve where a unit is worth next to nothing. */
const AMOUNT_MAX = 99_999_999
const AMOUNT_MAX_OF: Readonly<Record<string, number>> = { idr: 999_999_999_999 }

const CREATE = {
  amount: positive,
  currency,
  payment_method: text,
  confirm: boolean,
  capture_method: oneOf('automatic', 'automatic_async', 'manual'),
  metadata,
  description: text,
  off_session: tolerated,
  payment_method_types: tolerated,
  allowed_payment_method_types: tolerated,
  automatic_payment_methods: tolerated,
  payment_method_options: tolerated,
  confirmation_method: tolerated,
  error_on_requires_action: tolerated,
  return_url: tolerated,
  expand,
}
const CAPTURE = { amount_to_capture: positive, final_capture: boolean, metadata, expand }
const CANCEL = {
  cancellation_reason: oneOf('duplicate', 'fraudulent', 'requested_by_customer', 'abandoned'),
  expand,
}
const REFUND = {
  payment_intent: text,
  amount: positive,
  reason: oneOf('duplicate', 'fraudulent', 'requested_by_customer'),
  metadata,
}

export function readCreate(form: ParameterMap): Order {
  const read = readParameters(form, CREATE)
  const amount = required(read.amount, 'amount')
  const code = required(read.currency, 'currency')
  const paymentMethod = required(read.payment_method, 'payment_method')
  const card = CARDS.get(paymentMethod)
  if (amount > (AMOUNT_MAX_OF[code] ?? AMOUNT_MAX)) {
    throw invalidRequest('The amount is more than a payment can be.', 'amount_too_large', 'amount')
  }
  if (read.confirm !== true) {
    throw invalidRequest(
      'This sandbox confirms payments when they are made: send confirm=true.',
      undefined,
      'confirm',
    )
  }
  if (card === undefined) throw missing('PaymentMethod', paymentMethod, 'payment_method', 400)
  const captureMethod = read.capture_method === 'manual' ? 'manual' : 'automatic'
  const brought = read.metadata ?? {}
  const told = expanded(read.expand)
  return {
    metadata: brought,
    carryOut: (_, nonce) => ({
      kind: card.decline !== null ? 'decline' : captureMethod === 'manual' ? 'authorization' : 'capture',
      payment_intent: `pi_${nonce}`,
      amount,
      currency: code,
      metadata: brought,
      capture_method: captureMethod,
      payment_method: paymentMethod,
      description: read.description ?? null,
      ...told,
    }),
  }
}

export function readCapture(form: ParameterMap, id: string): Order {
  const read = readParameters(form, CAPTURE)
  const told = expanded(read.expand)
  return {
    metadata: read.metadata ?? {},
    carryOut(books) {
      const intent = found(books, id)
      if (intent.status !== 'requires_capture') throw unexpected(intent, 'captured', ['requires_capture'])
      const amount = read.amount_to_capture ?? intent.capturable
      if (amount > intent.capturable) {
        throw conflict('amount_too_large', `The amount is more than the ${intent.capturable} that is held.`, {
          param: 'amount_to_capture',
        })
      }
      return {
        ...of(intent),
        kind: 'capture',
        amount,
        final: read.final_capture !== false || amount === intent.capturable,
        metadata: read.metadata ?? {},
        ...told,
      }
    },
  }
}

export function readCancel(form: ParameterMap, id: string): Order {
  const read = readParameters(form, CANCEL)
  const told = expanded(read.expand)
  return {
    metadata: {},
    carryOut(books) {
      const intent = found(books, id)
      const open = ['requires_payment_method', 'requires_capture'] as const
      if (!open.some((status) => status === intent.status)) throw unexpected(intent, 'canceled', open)
      return { ...voided(intent, read.cancellation_reason ?? null), ...told }
    },
  }
}

export function readRefund(form: ParameterMap): Order {
  const read = readParameters(form, REFUND)
  const id = required(read.payment_intent, 'payment_intent')
  return {
    metadata: read.metadata ?? {},
    carryOut(books, nonce) {
      const intent = books.intent(id)
      if (intent === undefined) throw missing('payment_intent', id, 'payment_intent', 400)
      const left = intent.received - intent.refunded
      if (intent.received === 0) {
        const message = `This PaymentIntent (${id}) does not have a successful charge to refund.`
        throw conflict('payment_intent_unexpected_state', message)
      }
      if (left === 0) {
        throw conflict('charge_already_refunded', `Charge ${intent.charge} has already been refunded.`)
      }
      const amount = read.amount ?? left
      if (amount > left) {
        const message = `Refund amount (${amount}) is greater than unrefunded amount on charge (${left}).`
        throw conflict('amount_too_large', message, { param: 'amount' })
      }
      return {
        ...of(intent),
        kind: 'refund',
        refund: `re_${nonce}`,
        amount,
        reason: read.reason ?? null,
        metadata: read.metadata ?? {},
      }
    },
  }
}

/** Lets go of what is held. */
export function voided(intent: Intent, reason: string | null): Moved {
  return { ...of(intent), kind: 'void', amount: intent.capturable, reason }
}

/** 24 letters that nobody else draws: what the ids of a movement are made of. */
export function drawNonce(): string {
  return randomBytes(12).toString('hex')
}

function of({ id, currency, metadata }: Intent) {
  return { payment_intent: id, currency, metadata }
}

function found(books: Books, id: string): Intent {
  const intent = books.intent(id)
  if (intent === undefined) throw missing('payment_intent', id, 'intent', 404)
  return intent
}

function unexpected(intent: Intent, what: string, allowed: readonly string[]): Error {
  const message =
    `This PaymentIntent could not be ${what} because it has a status of ${intent.status}. ` +
    `Only a PaymentIntent with one of the following statuses may be ${what}: ${allowed.join(', ')}.`
  const paymentIntent = presentIntent(intent, false)
  return conflict('payment_intent_unexpected_state', message, { payment_intent: paymentIntent })
}

function expanded(paths: readonly string[] | undefined): { expanded?: true } {
  const stray = paths?.find((path) => path !== 'latest_charge')
  if (stray !== undefined)
    throw invalidRequest(`This property cannot be expanded (${stray}).`, undefined, 'expand')
  return paths?.length ? { expanded: true } : {}
}
