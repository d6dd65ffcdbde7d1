import { expect, it } from 'vitest'
import { isDatabaseAway, isNotNow } from './away.ts'

const told = (code: string) => isDatabaseAway(Object.assign(new Error('x'), { code, severity: 'ERROR' }))

it.each(['08006', '25006', '53100', '53200', '57014', '57P01', '58030', 'XX001'])(
  '%s says that the database cannot do it now',
  (code) => expect(told(code)).toBe(true),
)

it.each(['22012', '23505', '42P01', 'P0001'])('%s does not', (code) => expect(told(code)).toBe(false))

it.each([
  ['55P03', true],
  ['40P01', true],
  ['57014', true],
  ['23505', false],
])('whether %s says that it may go well later: %s', (code, expected) =>
  expect(isNotNow(Object.assign(new Error('x'), { code }))).toBe(expected),
)
