import { describe, expect, it, vi } from 'vitest'
import { LIMITS } from '../../core/limits.ts'
import { type Asked, Gather } from './gather.ts'

type Batch = readonly Asked<number, number>[]

describe('gathering', () => {
  it('sends what was asked in one turn of the event loop together, and the rest when that is answered', async () => {
    const sizes: number[] = []
    let answer = () => {}
    const gather = new Gather<number, number>({
      batchMax: 3,
      underWayMax: 1,
      send: async (batch: Batch) => {
        sizes.push(batch.length)
        await new Promise<void>((resolve) => {
          answer = resolve
        })
        for (const { item, resolve } of batch) resolve(item * 2)
      },
    })
    const all = Promise.all([1, 2, 3, 4].map((n) => gather.ask(n)))
    await new Promise((resolve) => setImmediate(resolve))
    expect(sizes).toEqual([3])
    answer()
    await vi.waitFor(() => expect(sizes).toEqual([3, 1]))
    answer()
    expect(await all).toEqual([2, 4, 6, 8])
    expect(sizes).toEqual([3, 1])
  })

  it('refuses more than may wait', async () => {
    const gather = new Gather<number, number>({
      batchMax: 1,
      underWayMax: 1,
      send: () => new Promise(() => {}),
    })
    for (let i = 0; i < LIMITS.waitingMax; i += 1) gather.ask(i).catch(() => {})
    await expect(gather.ask(0)).rejects.toMatchObject({ code: 'overloaded' })
  })
})
