import { expect, it } from 'vitest'
import { firstIdAt, isId, makeId, timeOfId } from './ids.ts'

it('makes ids of version 7 that differ', () => {
  const ids = Array.from({ length: 1_000 }, () => makeId('pay'))
  expect(new Set(ids).size).toBe(1_000)
  for (const id of ids) {
    expect(id).toMatch(/^pay_[0-9a-f]{32}$/)
    expect(id[16]).toBe('7')
    expect(isId('pay', id)).toBe(true)
  }
})

it('puts the time first, so that later ids sort behind earlier ones', () => {
  const before = Date.now()
  const id = makeId('pay')
  const time = timeOfId(id)
  expect(time).toBeGreaterThanOrEqual(before)
  expect(time).toBeLessThanOrEqual(Date.now())
  expect(firstIdAt('pay', time) < id).toBe(true)
  expect(firstIdAt('pay', time + 1) > id).toBe(true)
  expect(firstIdAt('pay', -1) < id).toBe(true)
})

it('knows an id by its prefix and its form', () => {
  const id = makeId('pay')
  const uuid = id.slice(4)
  expect(isId('ref', id)).toBe(false)
  expect(isId('pa', id)).toBe(false)
  for (const other of [
    uuid,
    `pay_${uuid.toUpperCase()}`,
    `pay_${uuid.slice(1)}`,
    `${id}0`,
    `${id}\n`,
    ` ${id}`,
    `pay_${uuid.slice(0, 12)}4${uuid.slice(13)}`,
    `pay_${uuid.slice(0, 16)}c${uuid.slice(17)}`,
    '',
    7,
    null,
    undefined,
  ]) {
    expect(isId('pay', other)).toBe(false)
  }
})
