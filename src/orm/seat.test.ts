import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { LIMITS } from '../core/limits.ts'
import { seatOf } from './seat.ts'

const SILENCE = LIMITS.nestedSilenceMaxMs

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A statement, and its answer. */
function statement(): { readonly send: () => Promise<string>; answer(): void; sent: number } {
  let answer = () => {}
  const made = {
    sent: 0,
    send: () => {
      made.sent += 1
      return new Promise<string>((resolve) => {
        answer = () => resolve('answered')
      })
    },
    answer: () => answer(),
  }
  return made
}

describe('a seat', () => {
  it('lets others wait for as long as its holder does something, and refuses them when it is silent', async () => {
    const seat = seatOf({})
    const [holder, other] = [{}, {}]
    const begin = statement()
    void seat.take(holder, begin.send)
    const waiting = statement()
    const refused = vi.fn()
    seat.run(other, waiting.send).catch(refused)
    await vi.advanceTimersByTimeAsync(10 * SILENCE)
    expect(refused).not.toHaveBeenCalled()
    begin.answer()
    await vi.advanceTimersByTimeAsync(SILENCE / 2)
    const more = statement()
    void seat.run(holder, more.send)
    more.answer()
    await vi.advanceTimersByTimeAsync(SILENCE * 0.9)
    expect(refused).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(2 * SILENCE)
    expect(refused).toHaveBeenCalledWith(expect.objectContaining({ code: 'nested_transaction_busy' }))
    seat.leave(holder)
    expect(waiting.sent).toBe(0)
  })

  it('is given on in order: single statements at once, and up to the next nested transaction', async () => {
    const seat = seatOf({})
    const order: string[] = []
    const note = (name: string) => async () => void order.push(name)
    const [a, b, c] = [{}, {}, {}]
    await seat.take(a, note('a'))
    const waiting = [
      seat.run(c, note('1')),
      seat.take(b, note('b')),
      seat.run(c, note('2')),
      seat.take(c, note('c')),
    ]
    expect(order).toEqual(['a'])
    seat.leave(b)
    expect(order).toEqual(['a'])
    seat.leave(a)
    expect(order).toEqual(['a', '1', 'b'])
    seat.leave(b)
    await Promise.all(waiting)
    expect(order).toEqual(['a', '1', 'b', '2', 'c'])
  })

  it('has a bounded queue', async () => {
    const seat = seatOf({})
    await seat.take({}, async () => {})
    for (let n = 0; n < LIMITS.nestedWaitingMax; n += 1) seat.run({}, async () => {}).catch(() => {})
    await expect(seat.run({}, async () => {})).rejects.toMatchObject({ code: 'nested_transaction_busy' })
  })
})
