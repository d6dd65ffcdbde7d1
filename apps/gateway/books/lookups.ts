import { invalidRequest, missing } from '../http/failure.ts'
import type { ParameterMap } from '../http/form.ts'
import { ALWAYS, created, expand, positive, readParameters, required, text } from '../http/parameters.ts'
import { eventsOf, type GatewayEvent } from './events.ts'
import type { Books, Intent } from './index.ts'
import { presentIntent, presentRefund, seconds } from './present.ts'
import { matches, parseQuery } from './query.ts'

const LIMIT = 10
const LIMIT_MAX = 100

const PAGE = { limit: positive, starting_after: text, created }
const SEARCH = { query: text, limit: positive, page: text, expand }

/** Everything that is asked and changes nothing. Answers tell what lookups may see at the moment, which can be less than there is. */
export class Lookups {
  readonly #books: Books
  readonly #searchLagMs: number

  constructor(books: Books, searchLagMs: number) {
    this.#books = books
    this.#searchLagMs = searchLagMs
  }

  intent(id: string, form: ParameterMap, now: number) {
    const read = readParameters(form, { expand })
    const intent = seenAs(this.#books.intent(id), now)
    if (intent === null) throw missing('payment_intent', id, 'intent', 404)
    return presentIntent(intent, expands(read.expand, 'latest_charge'))
  }

  refund(id: string, form: ParameterMap, now: number) {
    readParameters(form, {})
    const refund = this.#books.refund(id)
    if (refund === undefined || refund.visibleAt > now) throw missing('refund', id, 'refund', 404)
    return presentRefund(refund)
  }

  event(id: string, form: ParameterMap, now: number) {
    readParameters(form, {})
    const effect = this.#books.effects[this.#eventPlace(id)]
    const event = effect && eventsOf(effect).find((event) => event.id === id)
    if (event === undefined || (effect?.entry.visible_at ?? 0) > now) throw missing('event', id, 'id', 404)
    return event
  }

  intents(form: ParameterMap, now: number) {
    const read = readParameters(form, { ...PAGE, expand })
    const { books, from, limit } = this.#from(read, (id) => this.#books.intent(id)?.place, 'intent')
    const { fromS, beforeS } = read.created ?? ALWAYS
    const expanded = expands(read.expand, 'data.latest_charge')
    const data = []
    for (let place = from ?? books.intents.length - 1; place >= 0 && data.length <= limit; place -= 1) {
      const intent = seenAs(books.intents[place], now)
      if (intent === null || seconds(intent.created) >= beforeS) continue
      if (seconds(intent.created) < fromS) break
      data.push(presentIntent(intent, expanded))
    }
    return pageOf(data, limit, '/v1/payment_intents')
  }

  refunds(form: ParameterMap, now: number) {
    const read = readParameters(form, { ...PAGE, payment_intent: text })
    const { books, from, limit } = this.#from(read, (id) => this.#books.refund(id)?.place, 'refund')
    const { fromS, beforeS } = read.created ?? ALWAYS
    const data = []
    for (let place = from ?? books.refunds.length - 1; place >= 0 && data.length <= limit; place -= 1) {
      const refund = books.refunds[place]!
      const at = seconds(refund.created)
      if (at < fromS) break
      const isOf = read.payment_intent === undefined || refund.intent.id === read.payment_intent
      if (isOf && at < beforeS && refund.visibleAt <= now) data.push(presentRefund(refund))
    }
    return pageOf(data, limit, '/v1/refunds')
  }

  events(form: ParameterMap, now: number) {
    const read = readParameters(form, { ...PAGE, type: text })
    const after = read.starting_after
    const from = after === undefined ? this.#books.effects.length - 1 : this.#eventPlace(after)
    if (from === -1 && after !== undefined) throw missing('event', after, 'starting_after', 400)
    const limit = limitOf(read.limit)
    const { fromS, beforeS } = read.created ?? ALWAYS
    const data: GatewayEvent[] = []
    for (let place = from; place >= 0 && data.length <= limit; place -= 1) {
      const effect = this.#books.effects[place]!
      const at = seconds(effect.entry.at)
      if (at < fromS) break
      if (at >= beforeS || (effect.entry.visible_at ?? 0) > now) continue
      const isNext = ({ id, type }: GatewayEvent) =>
        (place !== from || after === undefined || id < after) && (read.type ?? type) === type
      data.push(...eventsOf(effect).filter(isNext).reverse())
    }
    return pageOf(data, limit, '/v1/events')
  }

  /** What is younger than the lag is not in the index yet, whatever a look at the thing itself would tell. */
  search(form: ParameterMap, now: number) {
    const read = readParameters(form, SEARCH)
    const terms = parseQuery(required(read.query, 'query'))
    const { name, value } = terms.find(({ field }) => field === 'metadata')!
    const found = this.#books
      .withMetadata(name, value)
      .map((intent) => seenAs(intent, now, this.#searchLagMs))
      .filter((intent) => intent !== null && matches(intent, terms)) as Intent[]
    const limit = limitOf(read.limit)
    const skipped = read.page === undefined ? 0 : Number(read.page)
    if (!Number.isSafeInteger(skipped)) throw invalidRequest('Invalid page.', undefined, 'page')
    const data = found.reverse().slice(skipped, skipped + limit)
    const hasMore = found.length > skipped + limit
    return {
      object: 'search_result',
      data: data.map((intent) => presentIntent(intent, expands(read.expand, 'data.latest_charge'))),
      has_more: hasMore,
      next_page: hasMore ? `${skipped + limit}` : null,
      url: '/v1/payment_intents/search',
    }
  }

  #from(
    read: { readonly starting_after?: string; readonly limit?: number },
    placeOf: (id: string) => number | undefined,
    what: string,
  ) {
    const { starting_after: startingAfter } = read
    const place = startingAfter === undefined ? undefined : placeOf(startingAfter)
    if (startingAfter !== undefined && place === undefined) {
      throw missing(what, startingAfter, 'starting_after', 400)
    }
    return {
      books: this.#books,
      from: place === undefined ? undefined : place - 1,
      limit: limitOf(read.limit),
    }
  }

  /** An id is `evt_`, what the movement's ids are made of, and a digit. */
  #eventPlace(id: string): number {
    return this.#books.effectPlace(id.slice(4, -1)) ?? -1
  }
}

/** A thing as lookups see it; null for what they do not see at all. */
function seenAs(intent: Intent | undefined, now: number, lagMs = 0): Intent | null {
  let version = intent ?? null
  while (version !== null && Math.max(version.visibleAt, version.since + lagMs) > now) {
    version = version.previous
  }
  return version
}

function limitOf(limit = LIMIT): number {
  if (limit <= LIMIT_MAX) return limit
  throw invalidRequest(
    `This value must be less than or equal to ${LIMIT_MAX}.`,
    'parameter_invalid_integer',
    'limit',
  )
}

/** One more than asked for was looked up, to know whether there is more. */
function pageOf(data: readonly object[], limit: number, url: string) {
  return { object: 'list', data: data.slice(0, limit), has_more: data.length > limit, url }
}

function expands(paths: readonly string[] | undefined, known: string): boolean {
  const stray = paths?.find((path) => path !== known)
  if (stray === undefined) return paths !== undefined && paths.length > 0
  throw invalidRequest(`This property cannot be expanded (${stray}).`, undefined, 'expand')
}
