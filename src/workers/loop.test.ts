import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { makeGate, SECRET, settleWithin, waitUntil } from '../../test/contract/shop.ts'
import { makeRecorder } from '../../test/setup/recorder.ts'
import { OnlyonceError } from '../core/errors.ts'
import { onlyonce } from '../onlyonce/onlyonce.ts'
import type { Ran, Worker } from '../onlyonce/worker.ts'
import { memory } from '../store/memory/index.ts'
import { startWorkers } from './index.ts'

const NEVER_MS = 2_000_000_000

function open() {
  const heard = makeRecorder()
  return { heard, once: onlyonce({ store: memory(), secret: SECRET, observe: heard }) }
}

/** A worker that does what it is told for each of its batches, and the last of it again and again. */
function workerOf(...batches: (() => Promise<Ran> | Ran)[]) {
  const counts = { runs: 0, atOnce: 0, atOnceMax: 0 }
  const worker: Worker = {
    name: 'sweeper',
    async runOnce() {
      const batch = batches[Math.min(counts.runs, batches.length - 1)]!
      counts.runs += 1
      counts.atOnce += 1
      counts.atOnceMax = Math.max(counts.atOnceMax, counts.atOnce)
      try {
        return await batch()
      } finally {
        counts.atOnce -= 1
      }
    },
  }
  return { worker, counts }
}

const more = () => ({ done: 1, more: true })
const idle = () => ({ done: 0, more: false })
const fail = () => Promise.reject(new OnlyonceError('store_unavailable'))

describe('the loop of a worker', () => {
  test('asks again at once while more is waiting, and then pauses', async () => {
    const { once } = open()
    const { worker, counts } = workerOf(more, more, more, idle)
    const workers = startWorkers(once, { defaults: false, workers: [worker], everyMs: NEVER_MS })
    await waitUntil('all batches ran', () => counts.runs === 4)
    await settleWithin(5_000, workers.stop())
    expect(counts).toEqual({ runs: 4, atOnce: 0, atOnceMax: 1 })
  })

  test('asks again after a while where nothing was waiting, as often as the worker says', async () => {
    const { once } = open()
    const { worker, counts } = workerOf(idle)
    const workers = startWorkers(once, {
      defaults: false,
      workers: [{ ...worker, everyMs: 1 }],
      everyMs: NEVER_MS,
    })
    await waitUntil('it looked again and again', () => counts.runs > 3)
    await workers.stop()
  })

  test('leaves others their turn beside a worker that never waits', async () => {
    const { once } = open()
    const { worker, counts } = workerOf(more)
    const workers = startWorkers(once, { defaults: false, workers: [worker] })
    await new Promise((resolve) => setTimeout(resolve, 1))
    await workers.stop()
    expect(counts.runs).toBeGreaterThan(0)
  })

  test('tells errors, and goes on after them', async () => {
    const { once, heard } = open()
    const { worker, counts } = workerOf(fail, fail, () => Promise.reject(new TypeError('odd')), idle)
    const workers = startWorkers(once, { defaults: false, workers: [worker], everyMs: NEVER_MS })
    await waitUntil('it got over them', () => counts.runs === 4)
    await workers.stop()
    const told = heard.of('worker_failed').map(({ worker, code }) => `${worker} ${code}`)
    expect(told).toEqual(['sweeper store_unavailable', 'sweeper store_unavailable', 'sweeper other'])
  })

  test('pauses longer and longer while the store is away', async () => {
    const { once } = open()
    const { worker, counts } = workerOf(fail)
    const longest = vi.spyOn(Math, 'random').mockReturnValue(1)
    onTestFinished(() => longest.mockRestore())
    const began = performance.now()
    const workers = startWorkers(once, { defaults: false, workers: [worker], everyMs: 1 })
    await waitUntil('it failed six times', () => counts.runs === 6)
    // 10, 20, 40, 80 and 160 ms; a timer may be early by less than one.
    expect(performance.now() - began).toBeGreaterThan(305)
    await settleWithin(5_000, workers.stop())
  })

  test('lets the batch that runs finish when it is stopped, and begins no other', async () => {
    const { once } = open()
    const gate = makeGate()
    let finished = false
    const { worker, counts } = workerOf(async () => {
      await gate.pass()
      finished = true
      return more()
    })
    const workers = startWorkers(once, { defaults: false, workers: [worker] })
    await gate.reached
    const stopped = workers.stop()
    gate.open()
    await stopped
    expect(finished).toBe(true)
    expect(counts.runs).toBe(1)
  })

  test('ends when everything is closed, without a word about it', async () => {
    const { once, heard } = open()
    const ended = workerOf(() => Promise.reject(new OnlyonceError('closed')))
    const idling = workerOf(idle)
    startWorkers(once, { defaults: false, workers: [ended.worker, idling.worker], everyMs: 1 })
    await waitUntil('both ran', () => ended.counts.runs === 1 && idling.counts.runs > 3)
    expect(ended.counts.runs).toBe(1)
    await settleWithin(5_000, once.close())
    const { runs } = idling.counts
    const other = workerOf(idle)
    const elsewhere = startWorkers(open().once, { defaults: false, workers: [other.worker], everyMs: 1 })
    await waitUntil('another would have run again and again', () => other.counts.runs > 5)
    await elsewhere.stop()
    expect(idling.counts.runs).toBe(runs)
    expect(heard.of('worker_failed')).toEqual([])
    expect(() => startWorkers(once, { defaults: false, workers: [idling.worker] })).toThrow(/shutting down/)
  })

  test('is one for each worker: a second one is refused, and stops nothing', async () => {
    const { once } = open()
    const { worker, counts } = workerOf(idle)
    const workers = startWorkers(once, { defaults: false, workers: [worker], everyMs: 1 })
    expect(() => startWorkers(once, { defaults: false, workers: [worker] })).toThrow(/runs already/)
    const runs = counts.runs
    await waitUntil('the first goes on', () => counts.runs > runs + 2)
    await workers.stop()
    await startWorkers(once, { defaults: false, workers: [worker] }).stop()
  })

  test.each([
    [{ defaults: false }, 'no worker to run'],
    [{ defaults: false, workers: [] }, 'no worker to run'],
    [{ defaults: false, workers: [workerOf(idle).worker], reaper: { mode: 'delete' } }, 'leaves it out'],
    [
      { workers: [{ ...workerOf(idle).worker, name: 'reaper' }], reaper: { mode: 'delete' } },
      'Pass one of them',
    ],
    [{ workers: workerOf(idle).worker }, 'workers is a list'],
    [{ defaults: 'no' }, 'defaults is true or false'],
    [{ workers: [{ name: 'none' }] }, 'runOnce'],
    [{ workers: [workerOf(idle).worker], everyMs: 0 }, 'everyMs'],
    [{ workers: [workerOf(idle).worker], pauseMs: 1 }, 'no option pauseMs'],
  ])('refuses %j', (options, why) => {
    expect(() => startWorkers(open().once, options as never)).toThrow(why)
  })
})
