import { randomInt } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { Control } from './control.ts'
import { Faults } from './faults.ts'
import { makeFolder } from './folder.ts'
import { answer, answerFailure, refuseAtOnce } from './http/answer.ts'
import { type Call, checkApiKey, readBody, readKey } from './http/call.ts'
import { type ParameterMap, parseForm } from './http/form.ts'
import { Journal } from './journal.ts'
import type { ServerOptions } from './options.ts'
import { Processor } from './processor.ts'
import { findRoute, type Route } from './routes.ts'
import { SeenRequests } from './seen.ts'
import { keepToken } from './token.ts'
import type { GatewayState, SeenRequest, Target } from './wire.ts'

/** How often it looks for holds that have run out, when nobody asks for anything. */
const EXPIRY_PAUSE_MS = 1_000

/** A payment processor that does as it is told, also when it is told to misbehave. */
export class GatewayServer {
  readonly processor: Processor
  readonly faults: Faults
  readonly seen: SeenRequests
  readonly #options: ServerOptions
  readonly #control: Control
  readonly #held: { readonly key: string; release(): void }[] = []
  readonly #received: Record<Target, number> = { create: 0, capture: 0, cancel: 0, refund: 0, lookup: 0 }
  readonly #requests = { prefix: randomInt(36 ** 6, 36 ** 7).toString(36), count: 0 }
  #expiry: NodeJS.Timeout | undefined

  constructor(options: ServerOptions) {
    makeFolder(options.folder)
    this.#options = options
    this.processor = new Processor(options)
    this.faults = new Faults(options.seed)
    this.seen = new SeenRequests(
      new Journal<SeenRequest>(join(options.folder, 'requests.jsonl'), { synced: false }),
    )
    this.#control = new Control(this, keepToken(options.folder, options.controlToken))
  }

  /** Keeps idle connections open: one that is closed while a request is on its way would be a fault that nobody asked for. */
  listen(host: string, port: number): Promise<Server> {
    const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, (request, response) => {
      void this.#serve(request, response)
    })
    this.#expiry = setInterval(() => this.#expire(), EXPIRY_PAUSE_MS)
    return new Promise((resolve, reject) => {
      server.once('error', reject).listen(port, host, () => resolve(server))
    })
  }

  /** Once nothing is carried out any more. */
  async close(): Promise<void> {
    clearInterval(this.#expiry)
    await this.processor.close()
    await this.seen.close()
  }

  state(): GatewayState {
    return {
      now: this.processor.clock.now(),
      seed: this.#options.seed,
      faults: this.faults.rules,
      held: this.#held.map(({ key }) => key),
      received: this.#received,
      movements: this.processor.books.movements,
      webhooks: this.processor.webhooks.counts,
    }
  }

  /** Lets held requests go on: those of one key, or all. */
  release(key: string | null): void {
    for (const held of this.#held.filter((held) => key === null || held.key === key)) {
      this.#held.splice(this.#held.indexOf(held), 1)
      held.release()
    }
  }

  /** What is thrown in a timer ends the process; whoever asks next is told of it. */
  #expire(): void {
    try {
      this.processor.expire()
    } catch {}
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#requests.count += 1
    const request = `req_${this.#requests.prefix}${this.#requests.count.toString(36).padStart(7, '0')}`
    let call: Call | null = null
    try {
      const [path = '', query = ''] = (incoming.url ?? '').split('?', 2)
      const body = await readBody(incoming)
      if (path.startsWith('/_sandbox/'))
        return await this.#control.serve({ incoming, response, path, query, body })
      checkApiKey(incoming, this.#options.apiKey)
      const { method = '' } = incoming
      const route = findRoute(method, path)
      call = this.#receive(incoming, response, {
        request,
        route,
        path,
        text: method === 'GET' ? query : body,
      })
      await this.#carry(call, route)
    } catch (error) {
      // A body that never came whole has nobody to be told.
      if (incoming.destroyed && !incoming.complete) return
      if (call?.seen && call.seen.outcome === null) call.seen.outcome = 'refused'
      try {
        answerFailure(call ?? { response, request }, error)
      } catch {
        response.destroy()
      }
    }
  }

  #receive(
    incoming: IncomingMessage,
    response: ServerResponse,
    { request, route, path, text }: { request: string; route: Route; path: string; text: string },
  ): Call {
    const { target } = route
    this.#received[target] += 1
    this.seen.checkSound()
    const form = parseForm(text)
    const key = readKey(incoming)
    const method = incoming.method ?? ''
    const at = this.processor.clock.now()
    const arrival = key === null ? null : this.seen.add({ at, key, request, method, path, outcome: null })
    const header = incoming.headers['sandbox-fault']
    const plan = this.faults.plan({
      target,
      key,
      metadata: metadataOf(form),
      nth: arrival?.nth ?? 1,
      header: typeof header === 'string' ? header : undefined,
    })
    const { seen = null, written: arrived = null } = arrival ?? {}
    return { response, request, target, path, form, key, seen, arrived, plan }
  }

  async #carry(call: Call, route: Route): Promise<void> {
    if (refuseAtOnce(call)) {
      if (call.seen !== null) call.seen.outcome = 'failed'
      return
    }
    const { processor } = this
    if (route.target === 'lookup') {
      await this.#waitAt('before', call)
      processor.expire()
      const found = route.look(processor.lookups, call.form, processor.clock.now())
      // Looked first, and waited then: whatever was seen is on disk before it is told.
      await processor.settled()
      await this.#waitAt('after', call)
      return answer(call, { status: 200, body: JSON.stringify(found) })
    }
    const reply = await processor.order(
      call,
      () => route.read(call.form),
      () => this.#waitAt('before', call),
    )
    await this.#waitAt('after', call)
    answer(call, reply)
  }

  #waitAt(at: 'before' | 'after', { plan, key, request }: Call): Promise<void> | null {
    if (plan.size === 0) return null
    const delayMs = plan.get(`delay_${at}`)
    if (delayMs !== undefined) return this.processor.clock.sleep(delayMs)
    if (!plan.has(`hold_${at}`)) return null
    return new Promise((release) => this.#held.push({ key: key ?? request, release }))
  }
}

/** What a request brings, sound or not: rules look at it before anybody judges it. */
function metadataOf(form: ParameterMap): Record<string, string> {
  const metadata = form.get('metadata')
  if (!(metadata instanceof Map)) return {}
  return Object.fromEntries([...metadata].filter(([, value]) => typeof value === 'string')) as Record<
    string,
    string
  >
}
