import { beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { LIMITS } from '../../src/core/limits.ts'
import { UnattendedWatch } from '../../src/observe/index.ts'
import { engineOf } from '../../src/onlyonce/onlyonce.ts'
import { reconciler } from '../../src/workers/index.ts'
import { openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { abandonAt, makeTill, payment, payWith, SHORT } from './till.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
})
beforeEach(async () => {
  await shop.observer.query('TRUNCATE onlyonce.records CASCADE')
})

/** An operation in doubt whose look has been due for so many minutes. */
async function leaveInDoubt(name: string, minutes: number) {
  const pay = payWith(makeTill({ behaviour: 'lose', lookup: 'pending' }), { name })
  const call = payment()
  expect(await shop.open().run(pay, call)).toMatchObject({ outcome: 'unknown' })
  await overdue(call.key, minutes)
  return { pay, call }
}

const overdue = (key: string, minutes: number) =>
  shop.observer.query(
    `UPDATE onlyonce.records SET look_at = now() - $2::int * interval '1 minute' WHERE key = $1`,
    [key, minutes],
  )

function beQuick(): void {
  const limits = LIMITS as { unattendedCheckEveryMs: number; unattendedAfterMs: number }
  const { unattendedCheckEveryMs, unattendedAfterMs } = limits
  Object.assign(limits, { unattendedCheckEveryMs: 10, unattendedAfterMs: 20 })
  onTestFinished(() => {
    Object.assign(limits, { unattendedCheckEveryMs, unattendedAfterMs })
  })
}

/** A watch on the real store, and the operations that it has told. */
function watching() {
  const { operations } = engineOf(shop.open()).store
  const told: string[] = []
  const bounds = { unmovedMs: 1, againMs: 3_600_000 }
  const find = (except: readonly string[]) => operations!.longestWaiting(1, except)
  return { told, watch: new UnattendedWatch(find, ({ operation }) => told.push(operation), bounds) }
}

test('an operation in doubt that no worker looks at is told by a process that has its code', async () => {
  const { pay, call } = await leaveInDoubt('unattended.doubt', 60)
  beQuick()
  const recorder = makeRecorder()
  const once = shop.open({ background: true, operations: [pay], observe: recorder })
  await once.start()
  await waitUntil('it is told', () => recorder.of('unattended').length > 0)
  expect(recorder.of('unattended')).toEqual([
    { signal: 'unattended', id: { account: call.account, operation: 'unattended.doubt', key: call.key } },
  ])
})

test('where nothing observes it is a warning of the process, once', async () => {
  const { pay } = await leaveInDoubt('unattended.warned', 60)
  beQuick()
  const limits = LIMITS as { unattendedAgainMs: number }
  const againMs = limits.unattendedAgainMs
  limits.unattendedAgainMs = 1
  const warned: string[] = []
  const note = (warning: Error) => void warned.push(`${warning.name} ${warning.message}`)
  process.on('warning', note)
  onTestFinished(() => {
    limits.unattendedAgainMs = againMs
    process.off('warning', note)
  })
  const recorder = makeRecorder()
  const silent = shop.open({ background: true, operations: [pay] })
  const observed = shop.open({ background: true, operations: [pay], observe: recorder })
  await Promise.all([silent.start(), observed.start()])
  await waitUntil('it is told twice where it is observed', () => recorder.of('unattended').length > 1)
  await waitUntil('it is warned of', () => warned.length > 0)
  const told = warned.filter((warning) => warning.startsWith('OnlyonceUnattendedWarning'))
  expect(told).toHaveLength(1)
  expect(told[0]).toMatch(/^OnlyonceUnattendedWarning unattended\.warned: .*startWorkers/)
})

test('an operation whose owner vanished is told too, and one that is not overdue is not', async () => {
  const pay = payWith(makeTill(), { name: 'unattended.vanished', between: abandonAt('created') })
  const call = { ...payment(), ...SHORT }
  await shop
    .open()
    .run(pay, call)
    .catch(() => {})
  await leaveInDoubt('unattended.later', -60)
  await shop.observer.query(
    `UPDATE onlyonce.records SET attempted_at = now() - interval '1 hour', lease_until = now() - interval '1 hour' WHERE key = $1`,
    [call.key],
  )
  const { told, watch } = watching()
  await waitUntil('it is told', async () => {
    await watch.look()
    return told.length > 0
  })
  await watch.look()
  await watch.look()
  expect(told).toEqual(['unattended.vanished'])
})

test('a worker that is only busy is no reason, however far it is behind', async () => {
  const behind = await Promise.all(
    [90, 80, 70, 60].map((minutes) => leaveInDoubt('unattended.busy', minutes)),
  )
  const once = shop.open({ operations: [behind[0]!.pay] })
  const { told, watch } = watching()
  for (const { call } of behind.slice(0, 3)) {
    await watch.look()
    const before = await shop.observer.query('SELECT fence FROM onlyonce.records WHERE key = $1', [call.key])
    expect(await reconciler(once, { batchMax: 1 }).runOnce()).toMatchObject({ done: 1 })
    const after = await shop.observer.query('SELECT fence FROM onlyonce.records WHERE key = $1', [call.key])
    expect(Number(after.rows[0].fence)).toBe(Number(before.rows[0].fence) + 1)
  }
  await watch.look()
  expect(told).toEqual([])
  // It has stopped.
  await waitUntil('it is told', async () => {
    await watch.look()
    return told.length > 0
  })
})

test('an operation that no worker takes hides no other', async () => {
  await leaveInDoubt('unattended.first', 90)
  await leaveInDoubt('unattended.second', 60)
  const { told, watch } = watching()
  await waitUntil('both are told', async () => {
    await watch.look()
    return told.length > 1
  })
  expect(told).toEqual(['unattended.first', 'unattended.second'])
})

test('a process that has no code of an operation leaves it to others to tell', async () => {
  await leaveInDoubt('unattended.foreign', 90)
  const { pay } = await leaveInDoubt('unattended.own', 60)
  beQuick()
  const recorder = makeRecorder()
  const once = shop.open({ background: true, operations: [pay], observe: recorder })
  await once.start()
  await waitUntil('its own is told', () => recorder.of('unattended').length > 0)
  expect(recorder.of('unattended').map(({ id }) => id.operation)).toEqual(['unattended.own'])
})
