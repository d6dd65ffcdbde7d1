import { createHash } from 'node:crypto'
import { LIMITS } from '../../core/limits.ts'

/**
 * Which statements of the work come again and again. Those are prepared under a name, so that PostgreSQL parses
 * and plans them once for each connection: some 20 us less of its time a statement. Others are not, because a
 * prepared statement takes memory in every session for as long as it lives.
 */
export class Habits {
  readonly #seen = new Map<string, number>()
  readonly #names = new Map<string, string>()

  /** A name for a text that has become a habit, or undefined. */
  nameFor(text: string): string | undefined {
    const name = this.#names.get(text)
    if (name !== undefined) return name
    const times = (this.#seen.get(text) ?? 0) + 1
    if (times < LIMITS.prepareAfter) {
      // Texts that are never the same (values inside) would fill it: start over rather than grow.
      if (this.#seen.size >= LIMITS.statementsSeenMax) this.#seen.clear()
      this.#seen.set(text, times)
      return undefined
    }
    if (this.#names.size >= LIMITS.statementsPreparedMax) return undefined
    const made = `onlyonce_work_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`
    this.#names.set(text, made)
    this.#seen.delete(text)
    return made
  }
}
