import type { IncomingMessage } from 'node:http'
import type { Ledger, Order } from './ledger.ts'

/** Larger than any order. */
const BODY_MAX_BYTES = 65_536

/** Why a request is refused before anybody asks what it would do. Nothing of it is stored. */
export class Refused extends Error {
  readonly status: number

  constructor(status: number, code: string) {
    super(code)
    this.status = status
  }
}

/** What a request asks for, checked. */
export async function readOrder(request: IncomingMessage, ledger: Ledger): Promise<Order> {
  const kind = request.url === '/charges' ? 'charge' : 'refund'
  const key = request.headers['idempotency-key']
  const body = await readJson(request)
  if (typeof key !== 'string' || key === '') throw new Refused(400, 'key_missing')
  return kind === 'charge' ? chargeOf(key, body) : refundOf(key, body, ledger)
}

function chargeOf(key: string, body: Record<string, unknown>): Order {
  const { amount, currency = 'EUR', reference, token = null } = body
  const sound =
    Number.isSafeInteger(amount) &&
    (amount as number) > 0 &&
    typeof currency === 'string' &&
    typeof reference === 'string' &&
    (token === null || typeof token === 'string')
  if (!sound) throw new Refused(400, 'charge_invalid')
  return { kind: 'charge', key, amount: amount as number, currency, reference, token }
}

function refundOf(key: string, body: Record<string, unknown>, ledger: Ledger): Order {
  const charge = typeof body.charge === 'string' ? ledger.charge(body.charge) : undefined
  if (charge === undefined) throw new Refused(404, 'charge_unknown')
  const { id, amount, currency } = charge
  return { kind: 'refund', key, amount, currency, reference: id, token: null }
}

export async function readJson(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of request) {
    chunks.push(chunk)
    sizeBytes += chunk.length
    if (sizeBytes > BODY_MAX_BYTES) throw new Refused(413, 'body_too_large')
  }
  try {
    const value = JSON.parse(Buffer.concat(chunks).toString())
    if (typeof value === 'object' && value !== null) return value
  } catch {}
  throw new Refused(400, 'body_invalid')
}
