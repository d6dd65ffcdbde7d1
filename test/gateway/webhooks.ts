import type { Clock } from './clock.ts'
import type { Faults } from './faults.ts'
import { resultOf } from './ledger.ts'
import type { Entry, State } from './wire.ts'

/** Announces what was done, once, some time after it: no order is promised, and nothing is sent again. */
export class Webhooks {
  readonly #url: string | undefined
  readonly #faults: Faults
  readonly #clock: Clock
  readonly #counts = { delivered: 0, failed: 0, lost: 0 }

  constructor(url: string | undefined, faults: Faults, clock: Clock) {
    this.#url = url
    this.#faults = faults
    this.#clock = clock
  }

  get counts(): State['webhooks'] {
    return this.#counts
  }

  announce(entry: Entry): void {
    if (this.#url !== undefined) void this.#deliver(this.#url, entry)
  }

  async #deliver(url: string, entry: Entry): Promise<void> {
    const { kind, key, status } = entry
    const take = this.#faults.take.bind(this.#faults)
    const delay = take(['delay'], 'webhook', key)
    if (delay !== null) await this.#clock.sleep(entry.at + delay.ms - this.#clock.now())
    if (take(['lose'], 'webhook', key) !== null) {
      this.#counts.lost += 1
      return
    }
    const body = JSON.stringify({ type: `${kind}.${status}`, key, [kind]: resultOf(entry) })
    await this.#post(url, body)
    if (take(['double'], 'webhook', key) !== null) await this.#post(url, body)
  }

  async #post(url: string, body: string): Promise<void> {
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
      await response.arrayBuffer()
      this.#counts[response.ok ? 'delivered' : 'failed'] += 1
    } catch {
      this.#counts.failed += 1
    }
  }
}
