import { CLAIMS } from './claims.ts'
import { ENDS } from './ends.ts'
import { KEY_RULES } from './keys.ts'
import { LEASES } from './leases.ts'
import { REAPING } from './reaping.ts'
import { RECOVERY } from './recovery.ts'
import { KEYS, type StoreUnderTest } from './shared.ts'
import { STUCK } from './stuck.ts'
import { TRANSACTIONS } from './transactions.ts'
import { WITHIN } from './within.ts'

export { KEYS, type StoreUnderTest } from './shared.ts'

/** What the suite needs of a test runner: vitest, jest, mocha and node:test all have it. */
export interface TestRunner {
  readonly describe: (name: string, body: () => void) => unknown
  readonly it: (name: string, body: () => Promise<void>) => unknown
}

/**
 * The contract of a store, as tests. A store that passes may stand behind every kind of protection.
 *
 * @example
 * storeConformance({ describe, it }, 'my store', async () => ({ store: await makeMyStore(), begin }))
 */
export function storeConformance(
  runner: TestRunner,
  name: string,
  open: () => Promise<StoreUnderTest>,
): void {
  runner.describe(`${name} obeys the contract of stores`, () => {
    for (const [title, body] of Object.entries({
      ...CLAIMS,
      ...ENDS,
      ...LEASES,
      ...STUCK,
      ...RECOVERY,
      ...REAPING,
      ...TRANSACTIONS,
      ...WITHIN,
      ...KEY_RULES,
    })) {
      runner.it(title, async () => {
        const underTest = await open()
        await underTest.store.start(KEYS)
        await body(underTest)
      })
    }
  })
}
