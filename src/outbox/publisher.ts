import type { OutboxEvent } from '../store/outbox.ts'

/** What a publish came to, where not everything was taken. Events that are not named were delivered. */
export interface PublishResult {
  readonly failed?: readonly FailedEvent[]
  /** The destination says that it will never take anything again. It is asked seldom from now on. */
  readonly gone?: boolean
}

export interface FailedEvent {
  readonly id: string
  readonly error: unknown
  /** The destination has seen this event and does not want it: counts against the event. */
  readonly refused?: boolean
}

/** What a publisher is given beside the events. */
export interface PublishContext {
  /** Aborted when the time for this publish is over: soon after that another relay may deliver the same events. */
  readonly signal: AbortSignal
  readonly destination: string
}

/** A destination as a function. It throws when nothing, or an unknown part, was taken. */
export type Publish = (
  events: readonly OutboxEvent[],
  context: PublishContext,
  // biome-ignore lint/suspicious/noConfusingVoidType: a publisher that has nothing to say returns nothing.
) => Promise<void | PublishResult>

/**
 * A destination: a broker, a queue, an address. It is given events in the order of their aggregates, and must keep
 * that order: when one fails, later ones of its aggregate are not sent, and are named in `failed` too.
 *
 * @example
 * const kafka: Publisher = {
 *   async publish(events) {
 *     await producer.send({ topic, messages: events.map((event) => ({ key: event.aggregate ?? event.id, value: JSON.stringify(event) })) })
 *   },
 * }
 */
export interface Publisher {
  publish: Publish
}
