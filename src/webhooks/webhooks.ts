import { OnlyonceError } from '../core/errors.ts'
import type { Onlyonce } from '../onlyonce/door.ts'
import type { Engine } from '../onlyonce/engine.ts'
import { engineOf } from '../onlyonce/onlyonce.ts'
import type { Publisher } from '../outbox/index.ts'
import type { WebhookStore } from '../store/webhooks.ts'
import { type Deliverer, WebhookDeliverer } from './deliverer.ts'
import { type Endpoints, endpointsOf } from './endpoints.ts'
import { fanOut } from './fan-out.ts'
import { type Deliveries, deliveriesOf, type Messages, messagesOf } from './history.ts'
import { checkOptions, type WebhooksOptions } from './options.ts'
import { checkReplay, type Replayed, type ReplayMany, type ReplayOne, replay } from './replay.ts'

/** Webhooks on their way out. */
export interface Webhooks {
  readonly endpoints: Endpoints
  /** For a relay: `relay(once, { destinations: { webhooks: hooks.destination } })`. */
  readonly destination: Publisher
  readonly messages: Messages
  readonly deliveries: Deliveries
  /**
   * A worker that posts what is due. Any number of processes may run one.
   *
   * @example
   * startWorkers(once, { relay: { destinations: { webhooks: hooks.destination } }, workers: [hooks.deliverer()] })
   */
  deliverer(): Deliverer
  /**
   * Delivers again: one message, or what happened within a time. With the same id and the same bytes, signed anew.
   *
   * @example
   * await hooks.replay({ account, endpoint: endpoint.id, from: Date.parse('2026-11-14'), to: Date.parse('2026-11-15') })
   */
  replay(call: ReplayOne | ReplayMany): Promise<Replayed>
}

/**
 * Tells the endpoints of your accounts what the outbox emits: signed as Standard Webhooks has it, until it is taken, and never to an
 * address that is not public.
 *
 * @example
 * const hooks = webhooks(once)
 * const { secret } = await hooks.endpoints.create({ account, url: 'https://shop.example/hooks' })
 */
export function webhooks<Tx>(once: Onlyonce<Tx>, options: WebhooksOptions = {}): Webhooks {
  const { engine, store, ready } = webhooksOf(once)
  const settings = checkOptions(options)
  return {
    endpoints: endpointsOf(store, settings, ready),
    destination: fanOut(store, engine.crashPoint),
    messages: messagesOf(store, ready),
    deliveries: deliveriesOf(store, ready),
    deliverer: () => new WebhookDeliverer(engine, store, settings, ready),
    async replay(call) {
      checkReplay(call)
      await ready()
      return await replay(store, call)
    },
  }
}

/** The store's webhooks behind a front door, and the engine's start. */
export function webhooksOf<Tx>(once: Onlyonce<Tx>): {
  engine: Engine<Tx>
  store: WebhookStore
  ready: () => Promise<void>
} {
  const engine = engineOf(once)
  const store = engine.store.webhooks
  if (store === undefined) {
    throw new OnlyonceError('option_invalid', { detail: 'This store has no webhooks. Use postgres(…).' })
  }
  const ready = async () => {
    engine.refuseWhenClosing()
    await engine.start()
  }
  return { engine, store, ready }
}
