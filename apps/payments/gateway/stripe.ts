import { callRefused, type Found, notExecuted } from 'onlyonce'
import Stripe from 'stripe'
import type { Decline, Gateway } from './index.ts'
import { type Outcome, outcomeOf } from './stripe/classify.ts'
import { makeSender, type Sender } from './stripe/http.ts'
import { STRIPE_LIMITS } from './stripe/limits.ts'
import { lookUpAt, lookUpByKeyAt, STRIPE_IDS } from './stripe/look-up.ts'
import { checkOptions, type StripeOptions } from './stripe/options.ts'
import { findRefund, intentsOfKey, movementsOf, type Read } from './stripe/pages.ts'
import { authorizeParams, captureParams, refundParams } from './stripe/params.ts'
import { authorizationOf, captureOf, type Intent, refundOf, voidAnswer, voidOf } from './stripe/results.ts'

export { type Evidence, evidenceOf } from './stripe/evidence.ts'
export type { StripeOptions } from './stripe/options.ts'

/**
 * Stripe, through its own SDK. Its retries and its telemetry are off: a call is made again by the library, which asks
 * first what became of it.
 *
 * @example
 * const gateway = stripeGateway({ secretKey: process.env.STRIPE_SECRET_KEY, mode: 'live' })
 */
export function stripeGateway(options: StripeOptions): Gateway {
  const { mode, protocol, timeoutMs, visibleWithinMs, keyLifetimeMs, ...own } = checkOptions(options)
  const makeStripe = (httpClient: Stripe.HttpClient) =>
    new Stripe(own.secretKey, {
      host: own.host,
      port: own.port,
      protocol,
      httpClient,
      maxNetworkRetries: 0,
      telemetry: false,
      timeout: timeoutMs,
      appInfo: { name: 'onlyonce' },
    })
  const sender = makeSender(protocol, timeoutMs - STRIPE_LIMITS.timeoutMarginMs, makeStripe)
  const read: Read = async (signal, work) => {
    const ended = await sender.send(signal, work)
    if (ended.ok) return ended.answer
    // Whatever it is, it says nothing about what was looked for.
    const outcome = outcomeOf(ended.error, ended.exchange)
    throw new Error(outcome.is === 'declined' ? outcome.decline.message : outcome.why)
  }
  const retrieve = (id: string, signal: AbortSignal) =>
    read(signal, (stripe) => stripe.paymentIntents.retrieve(id, { expand: ['latest_charge'] }))

  return {
    name: 'stripe',
    mode,
    keyLifetimeMs,
    visibleWithinMs,
    timeoutMs,
    holdMaxMs: STRIPE_LIMITS.holdMaxMs,
    ids: STRIPE_IDS,

    async authorize(order, { key, signal }) {
      const params = authorizeParams(order, key, own.paymentMethodTypes)
      return await act(sender, signal, {
        call: (stripe) => stripe.paymentIntents.create(params, { idempotencyKey: key }),
        read: (intent) => decided(authorizationOf(intent, order, key, mode)),
        // An intent that comes with the no is the one that was asked for, and has no money either, or it is no answer to this.
        declined(decline, intent) {
          const found = intent === null ? null : authorizationOf(intent, order, key, mode)
          if (found?.status === 'found' && found.result.status !== 'declined') {
            fail(`Stripe declined ${found.result.gateway_id}, and tells that it has the money.`)
          }
          return decline
        },
      })
    },

    async capture(order, { key, signal }) {
      const made = (intent: Intent) => captureOf(intent, order, key, mode)
      return await act(sender, signal, {
        call: (stripe) =>
          stripe.paymentIntents.capture(order.gateway_id, captureParams(order, key), { idempotencyKey: key }),
        read: (intent) =>
          made(intent) ?? fail('Stripe answered a capture without its entry in the metadata.'),
        // An intent whose state forbids the capture may be one that this very capture has brought there.
        declined: (decline, intent) => (intent === null ? decline : (made(intent) ?? decline)),
      })
    },

    async void({ gateway_id: gatewayId, reason }, { key, signal }) {
      const params = reason === null ? {} : { cancellation_reason: reason }
      return await act(sender, signal, {
        call: (stripe) => stripe.paymentIntents.cancel(gatewayId, params, { idempotencyKey: key }),
        read: (intent) =>
          voidAnswer(intent, gatewayId, mode) ??
          fail('Stripe answered a cancellation, and still holds money.'),
        // Canceled already, by whomever: it is as it should be.
        declined(decline, intent) {
          const found = intent === null ? null : voidOf(intent, gatewayId, mode)
          return found?.status === 'found' ? found.result : decline
        },
      })
    },

    async refund(order, { key, signal }) {
      return await act(sender, signal, {
        call: (stripe) => stripe.refunds.create(refundParams(order, key), { idempotencyKey: key }),
        read: (refund) => decided(refundOf(refund, order, key)),
        declined: (decline) => decline,
      })
    },

    async findAuthorization(order, { key, signal }) {
      const ids = await intentsOfKey(read, key, signal)
      if (ids.length === 0) return { status: 'not_found' }
      if (ids.length > 1) fail(`Stripe has several payment intents of one key: ${ids.join(', ')}.`)
      return authorizationOf(await retrieve(ids[0]!, signal), order, key, mode)
    },

    async findCapture(order, { key, signal }) {
      const intent = await retrieve(order.gateway_id, signal)
      const result = captureOf(intent, order, key, mode)
      if (result !== null) return { status: 'found', result }
      return { status: intent.status === 'processing' ? 'pending' : 'not_found' }
    },

    async findVoid({ gateway_id: gatewayId }, { signal }) {
      return voidOf(await retrieve(gatewayId, signal), gatewayId, mode)
    },

    findRefund: (order, context) => findRefund(read, order, context),

    lookUp: lookUpAt(sender, mode),

    lookUpByKey: lookUpByKeyAt(read, retrieve),

    movements: (range) => movementsOf(read, range),
  }
}

interface Act<Answer, Result> {
  readonly call: (stripe: Stripe) => Promise<Answer>
  readonly read: (answer: Answer) => Result
  readonly declined: (decline: Decline, intent: Intent | null) => Result | Decline
}

/** Makes a call that does something, and says how it ended: a result, or an error of one of the three kinds. */
async function act<Answer, Result>(
  sender: Sender,
  signal: AbortSignal,
  { call, read, declined }: Act<Answer, Result>,
): Promise<Result | Decline> {
  const ended = await sender.send(signal, call)
  if (ended.ok) return read(ended.answer)
  const outcome = outcomeOf(ended.error, ended.exchange)
  return outcome.is === 'declined' ? declined(outcome.decline, outcome.intent) : raise(outcome)
}

function raise(outcome: Exclude<Outcome, { is: 'declined' }>): never {
  const error = new Error(outcome.why)
  switch (outcome.is) {
    case 'not_executed':
      throw notExecuted(error)
    case 'refused':
      throw callRefused(error)
    case 'in_doubt':
      throw error
    default:
      return outcome satisfies never
  }
}

/** What a call returns has been decided; what is still under way is in doubt. */
function decided<T>(found: Found<T>): T {
  if (found.status === 'found') return found.result
  return fail(`Stripe answered, and the outcome is ${found.status}.`)
}

function fail(message: string): never {
  throw new Error(message)
}
