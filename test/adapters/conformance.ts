import { beforeAll, describe, expect, it } from 'vitest'
import { Bench } from './case.ts'
import { TOPICS } from './cases/index.ts'
import type { AdapterUnderTest } from './under-test.ts'

/**
 * The one suite that every adapter has to pass, over real sockets and a real database.
 *
 * @example
 * runConformance(express5)
 */
export function runConformance(adapter: AdapterUnderTest): void {
  let bench: Bench
  beforeAll(async () => {
    bench = await Bench.open(adapter)
  })
  describe.each([...TOPICS])(`${adapter.name}: $name`, ({ cases }) => {
    for (const { name, needs, run } of cases) {
      const lacking = needs.find((feature) => adapter.lacks[feature] !== undefined)
      if (lacking === undefined) it(name, () => run(bench), CASE_MAX_MS)
      // Not run, and not silently: the reason stands here and in the table of results.
      else it(`${name} (not applicable)`, () => expect(adapter.lacks[lacking]).toMatch(/\S \S.*\.$/))
    }
  })
}

/** A reply that never comes is the usual failure of an adapter; nobody should wait a minute for each. */
const CASE_MAX_MS = 20_000
