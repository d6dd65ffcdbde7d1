import { LIMITS } from '../core/limits.ts'
import type { Labels } from './metrics.ts'

/** What a value is called when there are too many before it. */
const OTHER = 'other'

/**
 * Keeps the values of each label few. A metric has a series in memory for every combination of values, for as long as the process lives, so a
 * name that a client can choose would fill it. The first names are kept; those of routes and operations come with the first requests.
 */
export class BoundedLabels {
  readonly #seen = new Map<string, Set<string>>()

  of(labels: Labels): Labels {
    const names = Object.keys(labels)
    if (names.every((name) => this.#isKnown(name, `${labels[name]}`))) return labels
    return Object.fromEntries(
      names.map((name) => [name, this.#isKnown(name, `${labels[name]}`) ? labels[name]! : OTHER]),
    )
  }

  #isKnown(name: string, value: string): boolean {
    const values = this.#seen.get(name) ?? new Set()
    if (values.has(value)) return true
    if (values.size >= LIMITS.labelValuesMax) return false
    this.#seen.set(name, values.add(value))
    return true
  }
}
