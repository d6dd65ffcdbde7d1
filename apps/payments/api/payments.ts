import { idempotent } from 'onlyonce/fastify'
import type { Admit, Asked } from 'onlyonce/http'
import { Type } from 'typebox'
import { findAccount } from '../accounts/index.ts'
import { bounded } from '../database/bounded.ts'
import { parseAmount, parseCurrency } from '../money/index.ts'
import {
  findCurrency,
  findPayment,
  findRefund,
  listPayments,
  listRefunds,
  type PaymentFilter,
} from '../payments/index.ts'
import {
  CancelBody,
  CaptureBody,
  CreatePaymentBody,
  METADATA_NAME,
  Payment,
  PaymentId,
  Refund,
  RefundBody,
  RefundId,
} from '../payments/schemas.ts'
import { STATUSES } from '../payments/state.ts'
import { Refused } from '../problems.ts'
import type { Service } from '../service.ts'
import { callerOf, requireGateway } from './auth.ts'
import { BY_ID, PAGE_QUERY, pageOf, pageSchema, readPage } from './pages.ts'
import { readTime, Time } from './times.ts'
import type { Api } from './type.ts'

const Params = Type.Object({ payment: PaymentId })
const PAYMENTS = BY_ID('payments', 'pay')
const REFUNDS = BY_ID('refunds', 'ref')

const ListQuery = Type.Object(
  {
    ...PAGE_QUERY,
    status: Type.Optional(Type.Enum([...STATUSES])),
    reference: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    created_from: Type.Optional(Time),
    created_to: Type.Optional(Time),
  },
  {
    additionalProperties: false,
    patternProperties: {
      [`^metadata\\[${METADATA_NAME}\\]$`]: { type: 'string', maxLength: 500 },
    },
  },
)

/** `POST /v1/payments` and what can be done with a payment. The operations answer: none of these handlers is run. */
export async function paymentRoutes(app: Api, service: Service): Promise<void> {
  const { createPayment, capturePayment, cancelPayment, refundPayment } = service.operations
  const { admitPayment } = service.limits
  const admitWork = ofPayment(service)
  const find = (account: string, id: string) =>
    findPayment({ once: service.once, pool: service.reads.of(account) }, account, id)
  app.addHook('preHandler', requireGateway(service))

  app.post('/v1/payments', {
    schema: {
      summary: 'Create a payment',
      body: CreatePaymentBody,
      response: { 201: Payment },
      tags: ['payments'],
    },
    ...idempotent({
      operation: createPayment,
      admit: (asked) => admitPayment(asked, () => refuseUnnamed(service, asked)),
      input: ({ body }) => readCreate(body as CreatePaymentBody),
    }),
  })

  app.get(
    '/v1/payments',
    {
      schema: {
        summary: 'List payments, the newest first',
        querystring: ListQuery,
        response: { 200: pageSchema(Payment) },
        tags: ['payments'],
      },
    },
    async (request) => {
      const { limit, after } = readPage(PAYMENTS, request.query)
      const filter = readFilter(request.query)
      const before = after?.[0] ?? null
      const { account } = callerOf(request)
      const found = await listPayments(service.reads.of(account), account, filter, before, limit + 1)
      return pageOf(PAYMENTS, found, limit, ({ id }) => [id])
    },
  )

  app.get(
    '/v1/payments/:payment',
    { schema: { summary: 'Get a payment', params: Params, response: { 200: Payment }, tags: ['payments'] } },
    async (request) => {
      const found = await find(callerOf(request).account, request.params.payment)
      if (found === null) throw new Refused('not_found')
      return found
    },
  )

  app.post('/v1/payments/:payment/capture', {
    schema: {
      summary: 'Take what is held, or a part of it',
      params: Params,
      body: CaptureBody,
      response: { 200: Payment },
      tags: ['payments'],
    },
    ...idempotent({
      operation: capturePayment,
      admit: admitWork,
      input: ({ body, pathParams }) => {
        const { amount = null, final = null } = body as CaptureBody
        return { payment: pathParams.payment!, amount, final }
      },
    }),
  })

  app.post('/v1/payments/:payment/cancel', {
    schema: {
      summary: 'Let go of what is held',
      params: Params,
      body: CancelBody,
      response: { 200: Payment },
      tags: ['payments'],
    },
    ...idempotent({
      operation: cancelPayment,
      admit: admitWork,
      input: ({ body, pathParams }) => {
        const { reason = null } = body as CancelBody
        return { payment: pathParams.payment!, reason }
      },
    }),
  })

  app.post('/v1/payments/:payment/refunds', {
    schema: {
      summary: 'Give back what was taken, or a part of it',
      params: Params,
      body: RefundBody,
      response: { 201: Refund },
      tags: ['refunds'],
    },
    ...idempotent({
      operation: refundPayment,
      admit: admitWork,
      input: ({ body, pathParams }) => {
        const { amount = null, reason = null, metadata = {} } = body as RefundBody
        return { payment: pathParams.payment!, amount, reason, metadata }
      },
    }),
  })

  app.get(
    '/v1/payments/:payment/refunds',
    {
      schema: {
        summary: 'List the refunds of a payment',
        params: Params,
        querystring: Type.Object(PAGE_QUERY, { additionalProperties: false }),
        response: { 200: pageSchema(Refund) },
        tags: ['refunds'],
      },
    },
    async (request) => {
      const { payment } = request.params
      const account = callerOf(request).account
      if ((await find(account, payment)) === null) throw new Refused('not_found')
      const { limit, after } = readPage(REFUNDS, request.query)
      const found = await listRefunds(
        service.reads.of(account),
        account,
        payment,
        after?.[0] ?? null,
        limit + 1,
      )
      return pageOf(REFUNDS, found, limit, ({ id }) => [id])
    },
  )

  app.get(
    '/v1/payments/:payment/refunds/:refund',
    {
      schema: {
        summary: 'Get a refund',
        params: Type.Object({ payment: PaymentId, refund: RefundId }),
        response: { 200: Refund },
        tags: ['refunds'],
      },
    },
    async (request) => {
      const { payment, refund } = request.params
      const { account } = callerOf(request)
      const found = await findRefund(service.reads.of(account), account, payment, refund)
      if (found === null) throw new Refused('not_found')
      return found
    },
  )
}

/**
 * What can be told of a payment before a key is claimed: then the request can be mended and sent with the same key. Replays are
 * not asked about.
 */
function ofPayment({ limits, pool }: Service): Admit {
  return (asked) =>
    limits.admitWork(asked, async () => {
      const currency = await findCurrency(bounded(pool), asked.account, asked.pathParams.payment!)
      if (currency === null) throw new Refused('not_found')
      const { amount } = asked.body() as { amount?: unknown }
      if (amount !== undefined) parseAmount(amount, currency)
    })
}

/**
 * Where duplicates are refused, there has to be something to know them by: two honest payments of one payer and one amount are none.
 * Only the request that would run is asked about, so that what was accepted before the account changed its mind is replayed.
 */
async function refuseUnnamed({ pool }: Pick<Service, 'pool'>, asked: Asked): Promise<void> {
  const { reference, unique_reference: uniqueReference, duplicates } = asked.body() as CreatePaymentBody
  if (duplicates === 'warn' || reference !== undefined || uniqueReference !== undefined) return
  const refuses = duplicates ?? (await findAccount(bounded(pool), asked.account))?.duplicates
  if (refuses !== 'refuse') return
  throw new Refused('invalid_request', {
    field: 'reference',
    detail:
      'Duplicates are refused by their reference: send one, or a unique_reference, or duplicates: warn.',
  })
}

/** The form of the body is checked by then; whether there is such a currency, and such an amount in it, is not. */
function readCreate(body: CreatePaymentBody) {
  const currency = parseCurrency(body.currency)
  const { payer = null, reference = null, metadata = {}, duplicates = null } = body
  const amount = parseAmount(body.amount, currency)
  return {
    amount,
    currency,
    payment_method: body.payment_method,
    capture_method: body.capture_method ?? 'automatic',
    payer,
    reference,
    metadata,
    unique_reference: body.unique_reference ?? null,
    duplicates,
  }
}

function readFilter(query: Record<string, unknown>): PaymentFilter {
  // Not by assignment: one that is called __proto__ would be lost, and the list be of all payments.
  const metadata: Record<string, string> = Object.fromEntries(
    Object.entries(query).flatMap(([name, value]) => {
      const inner = /^metadata\[(.*)\]$/.exec(name)?.[1]
      return inner === undefined ? [] : [[inner, value as string]]
    }),
  )
  return {
    status: (query.status as PaymentFilter['status']) ?? null,
    reference: (query.reference as string | undefined) ?? null,
    metadata: Object.keys(metadata).length === 0 ? null : metadata,
    from: readTimeOf(query, 'created_from'),
    to: readTimeOf(query, 'created_to'),
  }
}

/** As it was written, with its microseconds. */
function readTimeOf(query: Record<string, unknown>, field: string): string | null {
  const text = query[field] as string | undefined
  if (text !== undefined) readTime(field, text)
  return text ?? null
}
