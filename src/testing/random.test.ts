import { describe, expect, it } from 'vitest'
import { random } from './random.ts'

function draw(seed: number, count: number): number[] {
  const source = random(seed)
  return Array.from({ length: count }, () => source.next())
}

describe('random', () => {
  it('makes the same choices from the same seed', () => {
    expect(draw(7, 100)).toEqual(draw(7, 100))
  })

  it('makes other choices from a neighbouring seed, also past 32 bits', () => {
    expect(draw(7, 5)).not.toEqual(draw(8, 5))
    expect(draw(2 ** 32 + 7, 5)).not.toEqual(draw(7, 5))
  })

  it('stays inside its range and is roughly even', () => {
    const source = random(1)
    const counts = [0, 0, 0, 0]
    for (let i = 0; i < 4_000; i++) counts[source.integer(4)]! += 1
    for (const count of counts) expect(count).toBeGreaterThan(850)
  })

  it('never takes a chance of 0 and always one of 1', () => {
    const source = random(3)
    for (let i = 0; i < 1_000; i++) {
      expect(source.chance(0)).toBe(false)
      expect(source.chance(1)).toBe(true)
    }
  })

  it('forks streams that do not depend on what was drawn before', () => {
    const fresh = random(5)
    const used = random(5)
    used.next()
    expect(used.fork(2).next()).toBe(fresh.fork(2).next())
    expect(fresh.fork(1).next()).not.toBe(fresh.fork(2).next())
    expect(fresh.fork(0).next()).not.toBe(random(5).next())
  })

  it('picks every element of a list', () => {
    const source = random(9)
    const seen = new Set(Array.from({ length: 100 }, () => source.pick(['before', 'after', 'within'])))
    expect(seen.size).toBe(3)
  })

  it('refuses what it cannot draw from', () => {
    expect(() => random(0.5)).toThrow(/whole number/)
    expect(() => random(1).integer(0)).toThrow(/at least 1/)
    expect(() => random(1).pick([])).toThrow(/at least 1/)
  })
})
