import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { Books, type Effect } from './books/index.ts'
import { Keys, type Remembered } from './books/keys.ts'
import { Lookups } from './books/lookups.ts'
import { drawNonce, type Order, voided } from './books/orders.ts'
import { answerTo } from './books/present.ts'
import { Clock } from './clock.ts'
import { webhookFaults } from './faults.ts'
import type { Reply } from './http/answer.ts'
import type { Call } from './http/call.ts'
import { bodyOf, Failure, INTERNAL_ERROR } from './http/failure.ts'
import { canonical } from './http/form.ts'
import { Journal } from './journal.ts'
import type { ServerOptions } from './options.ts'
import { type DeliveryLine, Webhooks } from './webhooks.ts'
import type { JournalEntry, JournalLine, RefusalEntry } from './wire.ts'

type Identified = { readonly key: string | null; readonly request: string; readonly fingerprint: string }

/** Moves money, once for each key, and has it in its journal before anybody is told. */
export class Processor {
  readonly clock: Clock
  readonly books = new Books()
  readonly webhooks: Webhooks
  readonly lookups: Lookups
  readonly #keys: Keys
  readonly #journal: Journal<JournalLine>
  readonly #deliveries: Journal<DeliveryLine>

  constructor(options: ServerOptions) {
    const { folder } = options
    this.clock = new Clock(join(folder, 'clock'))
    this.lookups = new Lookups(this.books, options.searchLagMs)
    this.#keys = new Keys(options.keyLifetimeMs)
    this.#journal = new Journal(join(folder, 'journal.jsonl'), { synced: true })
    this.#deliveries = new Journal(join(folder, 'deliveries.jsonl'), { synced: false })
    this.webhooks = new Webhooks(options.webhook, this.clock, this.#deliveries)
    for (const line of this.#journal.lines) this.#keep(line)
    this.webhooks.announceOld(this.books.effects)
  }

  /** Carries an order out, or tells what became of it when its key came before. `wait` is when something else may delay it. */
  async order(call: Call, read: () => Order, wait: () => Promise<void> | null): Promise<Reply> {
    this.checkBooks()
    const { key, request, form, path } = call
    const fingerprint = createHash('sha256')
      .update(`${path}\n${canonical(form)}`)
      .digest('hex')
      .slice(0, 32)
    const replayed = key === null ? null : this.#claim(call, key, fingerprint)
    if (replayed !== null) return replayed
    try {
      const order = read()
      await wait()
      return await this.#execute(call, order, { key, request, fingerprint })
    } catch (error) {
      if (key !== null) this.#keys.release(key)
      throw error
    }
  }

  /** Resolves when all that was moved so far is on disk; null when it is there already. */
  settled(): Promise<void> | null {
    return this.#journal.settled()
  }

  /** A processor that cannot write its books moves nothing: what it has in memory would be gone after a restart. */
  checkBooks(): void {
    this.#journal.checkSound()
  }

  /** Lets go of what was held for too long. */
  expire(): void {
    this.checkBooks()
    const now = this.clock.now()
    for (let intent = this.books.expired(now); intent !== null; intent = this.books.expired(now)) {
      const by = { key: null, request: null, fingerprint: '' }
      const entry = { ...voided(intent, 'automatic'), ...by, at: now, nonce: drawNonce() }
      const effect = this.books.apply(entry)
      this.#journal.add(entry).then(
        () => this.webhooks.announce(effect),
        // The next request hears that the books cannot be written.
        () => {},
      )
    }
  }

  async close(): Promise<void> {
    this.webhooks.close()
    await this.#journal.close()
    await this.#deliveries.settled()
  }

  #claim(call: Call, key: string, fingerprint: string): Reply | null {
    const claimed = this.#keys.claim(key, fingerprint, this.clock.now())
    switch (claimed.claim) {
      case 'claimed':
        return null
      case 'key_reused':
        call.seen!.outcome = 'key_reused'
        throw keyReused(key)
      case 'in_use':
        call.seen!.outcome = 'in_use'
        throw keyInUse(key)
      case 'replay': {
        call.seen!.outcome = 'replayed'
        return replyOf(claimed.remembered, true)
      }
      default:
        return claimed satisfies never
    }
  }

  async #execute(call: Call, order: Order, by: Identified): Promise<Reply> {
    this.expire()
    const { plan, seen } = call
    if (plan.has('error_instead')) return await this.#refuse(call, by, 500, INTERNAL_ERROR)
    const nonce = drawNonce()
    const at = this.clock.now()
    const moved = this.#carryOut(order, nonce)
    if (moved instanceof Failure) return await this.#refuse(call, by, moved.status, bodyOf(moved.details))
    const webhooks = webhookFaults(plan)
    const entry: JournalEntry = {
      ...moved,
      at,
      ...by,
      nonce,
      ...(plan.has('lag') && { visible_at: at + plan.get('lag')! }),
      ...(plan.has('error_after') && { answered_error: true }),
      ...(webhooks !== null && { webhooks }),
    }
    // Otherwise nothing is awaited between the decision and what is kept of it: no other order comes between.
    if (plan.has('kill_before_journal') || plan.has('kill_within_journal')) await this.#dieBefore(call, entry)
    const effect = this.books.apply(entry)
    await Promise.all([this.#journal.add(entry), call.arrived])
    if (plan.has('kill_after_journal')) die()
    if (seen !== null) seen.outcome = 'executed'
    this.webhooks.announce(effect)
    return this.#remember(by, at, { state: 'done', effect })
  }

  #carryOut(order: Order, nonce: string): ReturnType<Order['carryOut']> | Failure {
    try {
      return order.carryOut(this.books, nonce)
    } catch (error) {
      if (error instanceof Failure && error.executed) return error
      throw error
    }
  }

  /** Nothing was moved, and that is what its key stands for from now on. */
  async #refuse(call: Call, by: Identified, status: number, body: string): Promise<Reply> {
    const { key } = by
    if (call.seen !== null) call.seen.outcome = status === 500 ? 'failed' : 'refused'
    if (key === null) {
      await this.settled()
      return { status, body }
    }
    const refusal = { kind: 'refusal' as const, at: this.clock.now(), ...by, key, status, body }
    await Promise.all([this.#journal.add(refusal), call.arrived])
    return this.#remember(by, refusal.at, { state: 'refused', refusal })
  }

  #remember(
    { key, fingerprint }: Identified,
    at: number,
    remembered: Exclude<Remembered, { state: 'running' }>,
  ): Reply {
    if (key !== null) this.#keys.remember(key, fingerprint, at, remembered)
    return replyOf(remembered, false)
  }

  /** Reads a line that an earlier process has written. */
  #keep(line: JournalLine): void {
    const { key, fingerprint, at } = line
    const remembered: Remembered =
      line.kind === 'refusal'
        ? { state: 'refused', refusal: line }
        : { state: 'done', effect: this.books.apply(line) }
    if (key !== null) this.#keys.remember(key, fingerprint, at, remembered)
  }

  async #dieBefore(call: Call, entry: JournalEntry): Promise<void> {
    await call.arrived
    // Another's line must not be torn, or come to stand behind what is.
    for (let writing = this.#journal.settled(); writing !== null; writing = this.#journal.settled())
      await writing
    if (call.plan.has('kill_within_journal')) this.#journal.tear(entry)
    die()
  }
}

/** The answer that a key stands for, made again from what was moved: the same bytes each time. */
function replyOf(remembered: Exclude<Remembered, { state: 'running' }>, isReplay: boolean): Reply {
  if (remembered.state === 'refused') return marked(remembered.refusal, remembered.refusal, isReplay)
  const { effect } = remembered
  return marked(storedAnswer(effect), effect.entry, isReplay)
}

function marked(reply: Reply, { request }: JournalEntry | RefusalEntry, isReplay: boolean): Reply {
  const { status, body } = reply
  return isReplay && request !== null ? { status, body, replayedOf: request } : { status, body }
}

function storedAnswer(effect: Effect): Reply {
  if (effect.entry.answered_error) return { status: 500, body: INTERNAL_ERROR }
  const { status, body } = answerTo(effect)
  return { status, body: JSON.stringify(body) }
}

function keyReused(key: string): Failure {
  const message = `Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '${key}' if you meant to execute a different request.`
  return new Failure(400, { type: 'idempotency_error', message })
}

function keyInUse(key: string): Failure {
  const message = `There is currently another in-progress request using this Idempotent Key: ${key}. Please try again later.`
  return new Failure(409, { type: 'idempotency_error', code: 'idempotency_key_in_use', message })
}

function die(): never {
  process.kill(process.pid, 'SIGKILL')
  // The signal may take a moment to arrive. Nothing is done meanwhile.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  throw new Error('A process outlived SIGKILL.')
}
