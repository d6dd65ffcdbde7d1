import { onlyonce } from 'onlyonce'
import { idempotent } from 'onlyonce/fetch'
import { postgres } from 'onlyonce/postgres'

const once = onlyonce({
  store: postgres({ connectionString: process.env.DATABASE_URL as string }),
  secret: process.env.ONLYONCE_SECRET as string,
})

export const POST = idempotent(
  once,
  { account: () => 'acct_1', operation: 'orders.create', protect: 'transaction' },
  async (_request, { idempotency: protection }) => {
    const { rows } = await protection!.tx.query('SELECT gen_random_uuid() AS id')
    return Response.json(rows[0], { status: 201 })
  },
)
