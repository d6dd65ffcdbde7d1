import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { isOfClass, memberOf } from '../core/thrown.ts'
import type { OutboxEvent } from '../store/outbox.ts'
import type { FailedEvent, Publisher, PublishResult } from './publisher.ts'

export interface HttpPublisherOptions {
  readonly url: string | URL
  /**
   * How long one post may take, until its status is there.
   *
   * @default 10_000
   */
  readonly timeoutMs?: number
  /** @default {} */
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Headers made of the very bytes that are sent, for example a signature.
   *
   * @default none
   */
  readonly sign?: (body: string, event: OutboxEvent) => SignedHeaders | Promise<SignedHeaders>
  /**
   * Events whose body is larger are refused, and not sent.
   *
   * @default 1_048_576
   */
  readonly bodyMaxBytes?: number
}

type SignedHeaders = Readonly<Record<string, string>>

const NAMES: OptionNames<HttpPublisherOptions> = {
  url: true,
  timeoutMs: true,
  headers: true,
  sign: true,
  bodyMaxBytes: true,
}

/** The other side says "not now", or nothing about this event. */
const NOT_NOW: readonly number[] = [401, 403, 404, 407, 408, 421, 425, 429]

/**
 * Posts each event as JSON to one address. 2xx means delivered; 410 that the address is gone; other 4xx that it does
 * not want this event. Everything else, a redirect and a lost answer included, means that the outcome is not known: the event is
 * posted again, with the same id in `Onlyonce-Event-Id`.
 *
 * @example
 * const worker = relay(once, { destinations: { billing: httpPublisher({ url: 'https://billing.example/events' }) } })
 */
export function httpPublisher(options: HttpPublisherOptions): Publisher {
  refuseUnknown('httpPublisher()', options, NAMES)
  const url = new URL(options.url)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new OnlyonceError('option_invalid', { detail: 'httpPublisher() takes an http or https address.' })
  }
  return {
    async publish(events, { signal }) {
      const failed: FailedEvent[] = []
      const state = { stop: false, gone: false }
      const groups = groupsOf(events)
      const work = async () => {
        for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
          failed.push(...(await postInOrder(group, url, options, signal, state)))
        }
      }
      await Promise.all(Array.from({ length: LIMITS.httpPostsAtOnce }, work))
      return { failed, gone: state.gone } satisfies PublishResult
    },
  }
}

interface State {
  /** Something other than a refusal of one event was heard: no more is sent. */
  stop: boolean
  gone: boolean
}

async function postInOrder(
  events: readonly OutboxEvent[],
  url: URL,
  options: HttpPublisherOptions,
  signal: AbortSignal,
  state: State,
): Promise<readonly FailedEvent[]> {
  for (const [place, event] of events.entries()) {
    const problem = state.stop ? { error: NOT_SENT } : await post(event, url, options, signal, state)
    if (problem === null) continue
    const rest = events.slice(place + 1).map(({ id }) => ({ id, error: NOT_SENT }))
    return [{ id: event.id, ...problem }, ...rest]
  }
  return []
}

const NOT_SENT = new Error('It was not sent, because something before it failed.')

async function post(
  event: OutboxEvent,
  url: URL,
  options: HttpPublisherOptions,
  signal: AbortSignal,
  state: State,
): Promise<Omit<FailedEvent, 'id'> | null> {
  const body = JSON.stringify(bodyOf(event))
  const { timeoutMs = LIMITS.publishTimeoutMs, bodyMaxBytes = LIMITS.bodySizeMaxBytes } = options
  if (Buffer.byteLength(body) > bodyMaxBytes) {
    return { error: new Error(`Its body is larger than ${bodyMaxBytes} bytes.`), refused: true }
  }
  try {
    // A promise has no headers of its own: not awaited, the event would leave unsigned.
    const signed = await options.sign?.(body, event)
    const response = await fetch(url, {
      method: 'POST',
      body,
      redirect: 'manual',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      headers: {
        'content-type': 'application/json',
        ...options.headers,
        'onlyonce-event-id': event.id,
        'onlyonce-event-type': encodeURIComponent(event.type),
        ...signed,
      },
    })
    // Nothing in it is of interest, and it may be endless.
    await response.body?.cancel()
    if (response.ok) return null
    const error = new Error(`The answer was ${response.status}.`)
    const refused = response.status >= 400 && response.status < 500 && !NOT_NOW.includes(response.status)
    state.gone ||= response.status === 410
    state.stop ||= state.gone || !refused
    return { error, refused: refused && !state.gone }
  } catch (error) {
    state.stop = true
    const cause = memberOf(error, 'cause')
    return { error: isOfClass(cause, Error) ? cause : error }
  }
}

/** Members of JSON on the wire are in snake_case. */
function bodyOf({ emittedAt, ...event }: OutboxEvent): object {
  return { ...event, emitted_at: emittedAt }
}

/** Those that have to stay in order, together. */
function groupsOf(events: readonly OutboxEvent[]): OutboxEvent[][] {
  const groups = new Map<string, OutboxEvent[]>()
  for (const event of events) {
    const name = event.aggregate === null ? event.id : `${event.account}\0${event.aggregate}`
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [event])
    else group.push(event)
  }
  return [...groups.values()]
}
