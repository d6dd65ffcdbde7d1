import { idempotent } from 'onlyonce/fastify'
import { type Static, Type } from 'typebox'
import { parseAmount, parseCurrency } from '../money/index.ts'
import { Amount, Currency, Metadata, Reference } from '../payments/schemas.ts'
import { Refused } from '../problems.ts'
import type { Service } from '../service.ts'
import { findTransfer, presentTransfer } from '../transfers/index.ts'
import { callerOf } from './auth.ts'
import { Nullable } from './schemas.ts'
import type { Api } from './type.ts'

const CreateTransferBody = Type.Object(
  {
    destination: Type.String({
      pattern: '^acct_[0-9a-f]{32}$',
      description: 'The account that receives it.',
    }),
    amount: Amount,
    currency: Currency,
    reference: Type.Optional(Reference),
    metadata: Type.Optional(Metadata),
  },
  { additionalProperties: false, $id: 'CreateTransfer' },
)
type CreateTransferBody = Static<typeof CreateTransferBody>

const Transfer = Type.Object(
  {
    id: Type.String(),
    destination: Type.String(),
    amount: Type.Integer(),
    currency: Type.String(),
    reference: Nullable(Type.String()),
    metadata: Type.Record(Type.String(), Type.String()),
    status: Type.Enum(['processing', 'succeeded', 'failed']),
    failure_code: Nullable(Type.String()),
    created_at: Type.String(),
  },
  { $id: 'Transfer' },
)

/** Money from the caller's balance to that of another account in the same mode. The operation answers. */
export async function transferRoutes(app: Api, service: Service): Promise<void> {
  app.post('/v1/transfers', {
    schema: {
      summary: 'Move money to another account',
      body: CreateTransferBody,
      response: { 201: Transfer },
      tags: ['transfers'],
    },
    ...idempotent({
      operation: service.operations.createTransfer,
      admit: service.limits.admitWork,
      input: ({ body }) => {
        const given = body as CreateTransferBody
        const currency = parseCurrency(given.currency)
        const { destination, reference = null, metadata = {} } = given
        return { destination, amount: parseAmount(given.amount, currency), currency, reference, metadata }
      },
    }),
  })

  app.get(
    '/v1/transfers/:transfer',
    {
      schema: {
        summary: 'Get a transfer',
        params: Type.Object({ transfer: Type.String({ pattern: '^trf_[0-9a-f]{32}$' }) }),
        response: { 200: Transfer },
        tags: ['transfers'],
      },
    },
    async (request) => {
      const { account } = callerOf(request)
      const found = await findTransfer(service.reads.of(account), account, request.params.transfer)
      if (found === null) throw new Refused('not_found')
      return presentTransfer(found)
    },
  )
}
