/**
 * Under which patterns this process has met each handler. Hono makes several routes of a list of paths, and keeps no list of all
 * routes where a layer could find it: that two patterns have one handler shows only when both have been asked for.
 */
export class PatternsSeen {
  readonly #patterns = new WeakMap<object, readonly string[]>()

  /** Notes a pattern, and gives all that the handler was met under. */
  add(handler: object, pattern: string): readonly string[] {
    const known = this.#patterns.get(handler) ?? []
    if (known.includes(pattern)) return known
    const all = [...known, pattern]
    this.#patterns.set(handler, all)
    return all
  }
}
