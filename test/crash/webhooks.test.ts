import { expect, it } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { relay } from '../../src/outbox/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { type CrashSite, crashEverywhere } from '../../src/testing/index.ts'
import { webhooks } from '../../src/webhooks/index.ts'
import { runDry } from '../outbox/office.ts'
import { compiled } from '../setup/compiled.ts'
import { freshDatabase } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import { openReceiver } from '../webhooks/desk.ts'

const PROGRAM = compiled(new URL('../programs/crash-webhooks.ts', import.meta.url))
/** Where a crash leaves something half done: fanned out and not noted as delivered, taken and not sent, sent and not noted. */
const POINTS = ['fan_out.after', 'take.after', 'post.after'].map((point) => `webhooks.${point}`)

const runOf = (site: CrashSite | null) => (site === null ? 'first' : `${site.point}-${site.occurrence}`)

it('a process killed anywhere between an event and its receiver loses no webhook', {
  timeout: 120_000,
}, async () => {
  const database = await freshDatabase()
  const [receiver, pool] = [await openReceiver(), database.direct({ max: 2 })]
  const once = onlyonce({
    store: postgres({ pool: database.pool(), pooler: POOLER }),
    secret: 's'.repeat(32),
  })
  const hooks = webhooks(once, { allowPrivate: true })
  const office = relay(once, { destinations: { webhooks: hooks.destination } })
  await office.runOnce()
  const { crashes } = await crashEverywhere({
    program: PROGRAM,
    points: POINTS,
    occurrencesMax: 1,
    runEnv: (site) => ({
      ...database.environment,
      RUN: runOf(site),
      POINTS: POINTS.join(),
      URL: receiver.url,
    }),
    // Another process goes on, as soon as the leases of the dead one have run out.
    afterEach: async (site) => {
      for (const table of ['cursors', 'webhook_deliveries']) {
        await pool.query(`UPDATE onlyonce.${table} SET lease_until = NULL`)
      }
      await runDry(office)
      await runDry(hooks.deliverer())
      const account = runOf(site)
      const { items } = await hooks.deliveries.list({ account })
      expect(items.map(({ state }) => state)).toEqual(Array(6).fill('delivered'))
      const times = items.map(({ message }) => receiver.ids().filter((id) => id === message).length)
      // At least once; and more than once only where it was sent, and its end not written.
      expect(times.every((count) => count >= 1)).toBe(true)
      if (site === null) expect(times).toEqual(Array(6).fill(1))
    },
  })
  await once.close()
  expect(new Set(crashes.map(({ point }) => point))).toEqual(new Set(POINTS))
})
