import { describe, expect, it } from 'vitest'
import { QueueWait } from './queue-wait.ts'

/** A queue as a test wants it, looked at every 100 ms. */
function watch() {
  const queue = { waiting: 0, lent: 0 }
  const wait = new QueueWait(queue, 0)
  let nowMs = 0
  return {
    /** So many wait at the end of each of some tenths of a second, and so many were served in each. */
    pass(tenths: number, waiting: number, served: number) {
      for (let i = 0; i < tenths; i += 1) {
        nowMs += 100
        queue.waiting = waiting
        queue.lent += served
        wait.look(nowMs)
      }
    },
    arrive(more: number) {
      queue.waiting += more
    },
    get waitMs() {
      return wait.waitMs(nowMs)
    },
  }
}

describe('the wait for a connection', () => {
  it('is none while nobody waits, and none for a burst that is soon served', () => {
    const queue = watch()
    queue.pass(20, 0, 1)
    expect(queue.waitMs).toBe(0)
    queue.arrive(1_000)
    expect(queue.waitMs).toBe(0)
    queue.pass(4, 500, 250)
    expect(queue.waitMs).toBe(0)
    queue.pass(1, 0, 500)
    expect(queue.waitMs).toBe(0)
  })

  it('is the length of the queue, divided by how fast it has moved', () => {
    const queue = watch()
    queue.pass(10, 300, 20)
    expect(queue.waitMs).toBe(1_500)
    // Of whoever comes now, also between two looks.
    queue.arrive(100)
    expect(queue.waitMs).toBe(2_000)
  })

  it('does not take an idle pool for a slow one', () => {
    const queue = watch()
    queue.pass(100, 0, 1)
    queue.pass(6, 100, 100)
    expect(queue.waitMs).toBe(100)
  })

  it('forgets how slow it was, within a second or so', () => {
    const queue = watch()
    queue.pass(30, 100, 1)
    queue.pass(10, 100, 100)
    expect(queue.waitMs).toBe(100)
  })

  it('grows with the time in which nobody was served, however few wait', () => {
    const queue = watch()
    queue.pass(100, 1, 0)
    expect(queue.waitMs).toBe(10_000)
    queue.pass(1, 0, 1)
    expect(queue.waitMs).toBe(0)
  })
})
