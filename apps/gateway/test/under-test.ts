import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import Stripe from 'stripe'
import { listening } from '../../../test/adapters/servers/listen.ts'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { compiled } from '../../../test/setup/compiled.ts'
import { type GatewayOptions, type GatewayProcess, startGateway } from '../index.ts'

const PROGRAM = new URL('../program.ts', import.meta.url)

export type StripeFailure = InstanceType<typeof Stripe.errors.StripeError>

export interface UnderTest {
  readonly gateway: GatewayProcess
  /** The official SDK, as anybody would use it. */
  readonly stripe: Stripe
}

/**
 * A gateway and a client of it, until the test is over, or the file when it is called outside of a test. Most tests share one: a key
 * of its own keeps each apart from the others.
 */
export async function openGateway(options: GatewayOptions = {}): Promise<UnderTest> {
  const gateway = await startGateway({ program: compiled(PROGRAM), ...options })
  cleanUpLater(() => gateway.stop())
  return { gateway, stripe: stripeOf(gateway) }
}

export function stripeOf({ host, port, apiKey }: GatewayProcess, key = apiKey): Stripe {
  return new Stripe(key, { host, port, protocol: 'http', maxNetworkRetries: 0, telemetry: false })
}

export function newKey(): string {
  return randomUUID()
}

export const TEA = { amount: 4200, currency: 'eur', payment_method: 'pm_card_visa', confirm: true } as const
export const HELD_TEA = { ...TEA, capture_method: 'manual' } as const

/** What the SDK throws. */
export async function failureOf(call: Promise<unknown>): Promise<StripeFailure> {
  try {
    await call
  } catch (error) {
    if (error instanceof Stripe.errors.StripeError) return error
    throw error
  }
  throw new Error('It was expected to fail.')
}

/** At once: a failure that nobody waits for yet would end the test. */
export function failuresOf(calls: readonly Promise<unknown>[]): Promise<StripeFailure[]> {
  return Promise.all(calls.map(failureOf))
}

/** What the journal says of a key, in short. */
export async function movedBy(gateway: GatewayProcess, key: string): Promise<string[]> {
  const journal = await gateway.journal()
  return journal.filter((entry) => entry.key === key).map(({ kind, amount }) => `${kind} ${amount}`)
}

export async function outcomesOf(gateway: GatewayProcess, key: string): Promise<(string | null)[]> {
  return (await gateway.requests(key)).map(({ outcome }) => outcome)
}

export interface Received {
  readonly body: string
  readonly signature: string
  readonly event: Stripe.Event
}

/** Somebody who gets webhooks, and answers with 200 unless told otherwise. */
export async function openReceiver() {
  const received: Received[] = []
  const statuses: number[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString()
    received.push({ body, signature: `${request.headers['stripe-signature']}`, event: JSON.parse(body) })
    response.writeHead(statuses.shift() ?? 200).end()
  })
  const { port, close } = await listening(server)
  cleanUpLater(close)
  return { received, statuses, url: `http://127.0.0.1:${port}/hooks` }
}
