import { Type } from 'typebox'
import { balances } from '../ledger/index.ts'
import { callerOf } from './auth.ts'
import type { Routes } from './type.ts'

const Balance = Type.Object({
  currency: Type.String(),
  available: Type.Integer({ description: 'What is owed to the account, in minor units.' }),
  pending: Type.Integer({ description: 'What is held for it and not yet taken.' }),
})

export const balanceRoutes: Routes = async (app, { reads }) => {
  app.get(
    '/v1/balances',
    {
      schema: {
        summary: 'List the balances of the account',
        description: 'One for each currency that it ever had.',
        tags: ['balances'],
        querystring: Type.Object({}, { additionalProperties: false }),
        response: { 200: Type.Object({ data: Type.Array(Balance) }) },
      },
    },
    async (request, reply) => {
      const { account } = callerOf(request)
      const found = await balances(reads.of(account), account)
      // Written out: a sum may be more than a number of JavaScript's can say, and is exact all the same.
      const data = found.map(
        ({ currency, available, pending }) =>
          `{"currency":${JSON.stringify(currency)},"available":${available},"pending":${pending}}`,
      )
      return reply.type('application/json; charset=utf-8').send(`{"data":[${data.join(',')}]}`)
    },
  )
}
