/** In a project of your own, import from 'onlyonce' and 'onlyonce/fetch' instead of from src/. */
import { type IdempotencyContext, idempotent } from '../../../../../../src/http/adapters/fetch/index.ts'
import type { PostgresTx } from '../../../../../../src/store/postgres/index.ts'
import { once } from '../../../../lib/once.ts'

/** A PostgreSQL driver needs Node's sockets. */
export const runtime = 'nodejs'

interface Context {
  readonly params: Promise<{ readonly id: string }>
  readonly idempotency: IdempotencyContext<PostgresTx>
}

/** Demo keys, for everybody to see. Real ones are random, and stored as hashes. */
const CUSTOMERS = new Map([['demo-acme', 'acme']])

export const POST = idempotent(
  once,
  {
    account: (request) => CUSTOMERS.get(request.headers.get('authorization')?.replace(/^Bearer /, '') ?? ''),
    operation: 'payments.capture',
    protect: 'transaction',
  },
  async (request: Request, { params, idempotency }: Context) => {
    const { id } = await params
    const { amount } = (await request.json()) as { amount: number }
    const { rowCount } = await idempotency.tx.query(
      'UPDATE payments SET captured = captured + $3 WHERE customer = $1 AND id = $2 AND captured + $3 <= authorized',
      [idempotency.account, id, amount],
    )
    // Too much is a result: it is stored and replayed, like a capture that went well.
    if (rowCount === 0) return Response.json({ error: 'too_much' }, { status: 422 })
    return Response.json({ id, captured: amount })
  },
)
