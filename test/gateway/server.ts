import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { answer, answerEntry, answerHalf, refuse } from './answer.ts'
import { Clock } from './clock.ts'
import { Faults } from './faults.ts'
import { Journal } from './journal.ts'
import { Ledger, type Order, resultOf } from './ledger.ts'
import { Refused, readJson, readOrder } from './orders.ts'
import { Webhooks } from './webhooks.ts'
import type { Control, Entry, GatewayOptions, KillPoint, Lookup, State, Target } from './wire.ts'

export interface ServerOptions extends GatewayOptions {
  readonly journal: string
  /** How far its clock was advanced before it was started again. */
  readonly advancedMs: number
}

/** A payment processor that does as it is told, also when it is told to misbehave. */
export class GatewayServer {
  readonly #clock: Clock
  readonly #journal: Journal
  readonly #ledger: Ledger
  readonly #faults = new Faults()
  readonly #webhooks: Webhooks
  readonly #held: { readonly key: string; release(): void }[] = []
  readonly #received = { charge: 0, refund: 0, lookup: 0 }
  /** Entries that are not on disk yet: nobody is told of them. */
  readonly #undurable = new Map<Entry, Promise<void>>()

  constructor({
    dedupe = true,
    keyLifetimeMs = Number.POSITIVE_INFINITY,
    webhookUrl,
    ...options
  }: ServerOptions) {
    this.#clock = new Clock(options.advancedMs)
    this.#journal = new Journal(options.journal)
    this.#ledger = new Ledger({ dedupe, keyLifetimeMs }, this.#journal.entries)
    this.#webhooks = new Webhooks(webhookUrl, this.#faults, this.#clock)
  }

  /** Keeps idle connections open: one that is closed while a request is on its way would be a fault that nobody asked for. */
  listen(port: number): Promise<Server> {
    const server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, (request, response) => {
      this.#serve(request, response).catch((error) => {
        if (error instanceof Refused) refuse(response, error.status, error.message)
        // A body that never came whole has nobody to be told. Whatever else fails is a fault of ours.
        else if (!request.destroyed || request.complete) throw error
      })
    })
    return new Promise((resolve, reject) => {
      server.once('error', reject).listen(port, '127.0.0.1', () => resolve(server))
    })
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '' } = request
    if (method === 'POST' && url === '/charges') return await this.#order(request, response)
    if (method === 'POST' && url === '/refunds') return await this.#order(request, response)
    if (method === 'GET' && url.startsWith('/by-key/')) {
      return await this.#lookUp(decodeURIComponent(url.slice('/by-key/'.length)), response)
    }
    if (method === 'GET' && url === '/journal') return answer(response, 200, this.#durableEntries())
    if (method === 'GET' && url === '/control') return answer(response, 200, this.#state())
    if (method === 'POST' && url === '/control') {
      this.#control((await readJson(request)) as unknown as Control)
      return answer(response, 200, this.#state())
    }
    throw new Refused(404, 'route_unknown')
  }

  async #order(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrivedAt = this.#clock.now()
    this.#received[request.url === '/charges' ? 'charge' : 'refund'] += 1
    const order = await readOrder(request, this.#ledger)
    const { kind, key } = order
    await this.#waitAt('before', kind, key, arrivedAt)
    if (this.#refuse(kind, key, response)) return
    const entry = await this.#carryOut(order)
    if (entry === null) return refuse(response, 409, 'key_reused')
    await this.#waitAt('after', kind, key, arrivedAt)
    const fault = this.#faults.take(['truncate'], kind, key)
    const failure = this.#faults.take(['lose', 'error'], kind, key, 'after')
    if (failure?.fault === 'lose') response.destroy()
    else if (failure !== null) refuse(response, 500, 'internal_error')
    else if (fault !== null) answerHalf(response, entry)
    else answerEntry(response, entry)
  }

  /** The entry that answers an order, on disk; null when its key belongs to another order. */
  async #carryOut(order: Order): Promise<Entry | null> {
    const lagMs = this.#faults.take(['lag'], order.kind, order.key)?.ms ?? 0
    // Nothing is awaited between the decision and what is kept of it: two orders with one key are one after the other.
    const decided = this.#ledger.decide(order, this.#clock.now(), lagMs)
    if (decided.decision === 'mismatch') return null
    const { entry } = decided
    if (decided.decision === 'replay') {
      await this.#undurable.get(entry)
      return entry
    }
    this.#dieAt('before_journal', entry)
    this.#dieAt('within_journal', entry)
    this.#ledger.keep(entry)
    const written = this.#journal.add(entry)
    this.#undurable.set(entry, written)
    await written
    this.#undurable.delete(entry)
    this.#dieAt('after_journal', entry)
    this.#webhooks.announce(entry)
    return entry
  }

  async #lookUp(key: string, response: ServerResponse): Promise<void> {
    this.#received.lookup += 1
    await this.#waitAt('before', 'lookup', key, this.#clock.now())
    if (this.#refuse('lookup', key, response)) return
    const now = this.#clock.now()
    const entry = this.#ledger.byKey(key, now)
    if (entry !== null) await this.#undurable.get(entry)
    const lookup: Lookup =
      this.#faults.take(['pending'], 'lookup', key) !== null
        ? { status: 'pending' }
        : entry === null || entry.visible_at > now
          ? { status: 'not_found' }
          : { status: 'found', result: resultOf(entry) }
    answer(response, lookup.status === 'not_found' ? 404 : 200, lookup)
  }

  /** Delays count from when the request came: a clock that is put forward meanwhile has gone on for it, too. */
  async #waitAt(at: 'before' | 'after', target: Target, key: string, arrivedAt: number): Promise<void> {
    const fault = this.#faults.take(['delay', 'hold'], target, key, at)
    if (fault === null) return
    if (fault.fault === 'delay') await this.#clock.sleep(arrivedAt + fault.ms - this.#clock.now())
    else await new Promise<void>((release) => this.#held.push({ key, release }))
  }

  /** Ends a request before anything was done. */
  #refuse(target: Target, key: string, response: ServerResponse): boolean {
    const failure =
      this.#faults.take(['busy'], target, key) ?? this.#faults.take(['lose', 'error'], target, key, 'before')
    if (failure === null) return false
    if (failure.fault === 'lose') response.destroy()
    else if (failure.fault === 'busy') refuse(response, 429, 'busy')
    else refuse(response, 500, 'internal_error')
    return true
  }

  #dieAt(point: KillPoint, entry: Entry): void {
    if (this.#faults.take(['kill'], entry.kind, entry.key, point) === null) return
    if (point === 'within_journal') this.#journal.tear(entry)
    process.kill(process.pid, 'SIGKILL')
    // The signal may take a moment to arrive. Nothing is done meanwhile.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  }

  #control(control: Control): void {
    if ('fault' in control) this.#faults.add(control)
    else if ('advance_ms' in control) this.#clock.advance(control.advance_ms)
    else if ('behave' in control) this.#faults.clear()
    else if ('release' in control) this.#release(control.release)
    else throw new Refused(400, 'control_unknown')
  }

  #release(key: string): void {
    const released = this.#held.filter((held) => key === 'all' || held.key === key)
    for (const held of released) {
      this.#held.splice(this.#held.indexOf(held), 1)
      held.release()
    }
  }

  #durableEntries(): Entry[] {
    return this.#journal.entries.filter((entry) => !this.#undurable.has(entry))
  }

  #state(): State {
    return {
      now: this.#clock.now(),
      held: this.#held.map(({ key }) => key),
      received: this.#received,
      webhooks: this.#webhooks.counts,
    }
  }
}
