import { expect, it } from 'vitest'
import { LIMITS } from '../core/limits.ts'
import { KnownWindows } from './known-windows.ts'
import { inTime } from './takes.ts'

const RULE = { points: 3, perMs: 60_000 }
const told = (window: string, left: number) => ({ granted: true, left, resetMs: 60_000, window })

it('what passed before the store told of a window counts in that window, and not in the next', () => {
  const known = new KnownWindows(RULE)
  known.take('a', 2)
  known.note('a', told('1', 2))
  expect(known.look('a', 1)).toMatchObject({ granted: false, left: 0 })
  known.note('a', told('2', 2))
  expect(known.look('a', 1)).toMatchObject({ granted: true, left: 1 })
})

it('an answer that comes late, of an earlier take, takes nothing back', () => {
  const known = new KnownWindows(RULE)
  known.note('a', told('1', 0))
  known.note('a', told('1', 2))
  expect(known.look('a', 1).granted).toBe(false)
})

it('knows of so many subjects, and forgets the oldest', () => {
  const known = new KnownWindows(RULE)
  known.take('first', 3)
  for (let n = 0; n < LIMITS.limitKnownMax; n += 1) known.take(`subject ${n}`, 3)
  expect(known.look('subject 9', 1).granted).toBe(false)
  expect(known.look('first', 1).granted).toBe(true)
})

it('an answer that lies in the process when its time is over is heard', async () => {
  // From here the next turn of the event loop begins with its timers, and what it reads comes after them.
  await new Promise((resolve) => setImmediate(resolve))
  let answer = (_: string) => {}
  const answered = new Promise<string>((resolve) => {
    answer = resolve
  })
  const asked = inTime(answered, 1)
  setImmediate(() => answer('there'))
  const began = performance.now()
  while (performance.now() - began < 20) {}
  expect(await asked).toBe('there')
})
