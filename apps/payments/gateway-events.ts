import type { Onlyonce } from 'onlyonce'
import type { Job } from 'onlyonce/outbox'
import type { PostgresTx } from 'onlyonce/postgres'
import type { ReceivedWebhook } from 'onlyonce/webhooks'
import { addEvidence } from 'onlyonce/workers'
import type Stripe from 'stripe'
import { evidenceOf } from './gateway/stripe.ts'

/** Under which the processor's events are received. They are about many accounts, so they are under none of them. */
export const GATEWAY_EVENTS = { account: 'processor', source: 'stripe', job: 'gateway.event' } as const

/**
 * Tells the library what an event proves about a call. It acts only where the call's outcome is in doubt, so neither order nor
 * delay nor repetition of events matters.
 */
export function hearGateway(once: Onlyonce<PostgresTx>) {
  return async ({ payload }: Pick<Job, 'payload'>): Promise<void> => {
    const { body } = payload as ReceivedWebhook
    for (const proof of evidenceOf(JSON.parse(body) as Stripe.Event)) await addEvidence(once, proof)
  }
}
