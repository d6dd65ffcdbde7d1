import { expect, it } from 'vitest'
import { isDatabaseAway } from './away.ts'

const told = (code: string) => isDatabaseAway(Object.assign(new Error('x'), { code, severity: 'ERROR' }))

it.each(['08006', '25006', '53100', '53200', '57014', '57P01', '58030', 'XX001'])(
  '%s says that the database cannot do it now',
  (code) => expect(told(code)).toBe(true),
)

it.each(['22012', '23505', '42P01', 'P0001'])('%s does not', (code) => expect(told(code)).toBe(false))
