import { describe, expect, test } from 'vitest'
import { onlyonce, operation, reply } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { reaper, startWorkers } from '../../src/workers/index.ts'
import { catchError, openShop, SECRET, waitUntil } from '../contract/shop.ts'
import { abandonAt, makeTill, payment, payWith, SHORT } from './till.ts'

describe('startWorkers', () => {
  test('finishes what was abandoned and what is in doubt, and tells what happened', async () => {
    const shop = await openShop()
    const till = makeTill()
    const abandoned = payWith(till, { name: 'payments.all', between: abandonAt('created') })
    const first = { ...payment(), ...SHORT }
    await catchError(shop.open().run(abandoned, first))
    const doubtful = makeTill({ idempotent: false, behaviour: 'lose', lookup: 'not_found' })
    const unsure = payWith(doubtful, { name: 'payments.unsure' })
    const second = payment()
    const once = shop.open({ reconcileAfterMs: Array.from({ length: 500 }, () => 5) })
    expect(await once.run(unsure, second)).toMatchObject({ outcome: 'unknown' })
    const telling = operation('payments.telling_all', (op, _: { amount: number }) =>
      op.transaction('told', async (tx) => {
        await op.emit(tx, 'told', {})
        return reply(201)
      }),
    )
    await once.run(telling, payment())
    const heard: string[] = []
    const workers = startWorkers(once, {
      operations: [abandoned],
      completer: { graceMs: 1 },
      relay: {
        destinations: { books: async (events) => void heard.push(...events.map(({ type }) => type)) },
      },
      everyMs: 10,
    })
    doubtful.lookup = 'truth'
    await waitUntil('all of it is done', async () => {
      const results = [await once.run(abandoned, first), await once.run(unsure, second)]
      return heard.length === 1 && results.every(({ outcome }) => outcome === 'replayed')
    })
    await workers.stop()
    expect([till.charges.length, doubtful.calls, heard]).toEqual([1, 1, ['told']])
  })

  test('runs what a store without operations has work for', async () => {
    const once = onlyonce({ store: memory(), secret: SECRET })
    await startWorkers(once).stop()
    await once.close()
  })

  test('runs the workers that it is given beside the default ones, or in their place', async () => {
    const reaped: string[] = []
    const store = memory()
    const { reap } = store
    store.reap = (request) => {
      reaped.push(request.mode)
      return reap.call(store, request)
    }
    const once = onlyonce({ store, secret: SECRET, background: false })
    const ran: string[] = []
    const workerOf = (name: string) => ({
      name,
      runOnce: async () => {
        ran.push(name)
        return { done: 0, more: false }
      },
    })
    const beside = startWorkers(once, { workers: [workerOf('mine')], everyMs: 1 })
    await waitUntil('both had a turn', () => ran.length > 0 && reaped.length > 0)
    await beside.stop()
    expect(new Set(reaped)).toEqual(new Set(['delete']))

    reaped.length = 0
    const instead = startWorkers(once, {
      workers: [reaper(once, { mode: 'expire', everyMs: 1 })],
      everyMs: 1,
    })
    await waitUntil('the one in its place had its turns', () => reaped.length > 2)
    await instead.stop()
    expect(new Set(reaped)).toEqual(new Set(['expire']))

    reaped.length = 0
    ran.length = 0
    const alone = startWorkers(once, { defaults: false, workers: [workerOf('alone')], everyMs: 1 })
    await waitUntil('it had its turns', () => ran.length > 9)
    await alone.stop()
    expect(reaped).toEqual([])
    await once.close()
  })
})

test('a store without a database says that it keeps no operations', async () => {
  const once = onlyonce({ store: memory(), secret: SECRET })
  const pay = payWith(makeTill())
  expect(await catchError(once.run(pay, payment()))).toMatchObject({
    code: 'option_invalid',
    message: expect.stringMatching(/keeps no operations/),
  })
  await once.close()
})
