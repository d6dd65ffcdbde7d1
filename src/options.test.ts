import { describe, expect, it } from 'vitest'
import { nearest, type OptionNames, refuseUnknown } from './options.ts'

interface Options {
  readonly lease_ms?: number
  readonly retention_ms?: number
  readonly operations?: readonly string[]
}

const KNOWN: OptionNames<Options> = { lease_ms: true, retention_ms: true, operations: true }

describe('refuseUnknown', () => {
  it('lets known options pass, also where they are undefined', () => {
    expect(() => refuseUnknown('make()', { lease_ms: 1, retention_ms: undefined }, KNOWN)).not.toThrow()
    expect(() => refuseUnknown('make()', {}, KNOWN)).not.toThrow()
  })

  it.each([
    ['leaseMs', 'lease_ms'],
    ['lease', 'lease_ms'],
    ['leese_ms', 'lease_ms'],
    ['retentoin_ms', 'retention_ms'],
    ['operation', 'operations'],
  ])('says that %s may be meant for %s', (given, meant) => {
    expect(() => refuseUnknown('make()', { [given]: 1 }, KNOWN)).toThrow(
      `make() has no option ${given}. Did you mean ${meant}?`,
    )
  })

  it('names all options where none is near', () => {
    expect(() => refuseUnknown('make()', { ttl: 1 }, KNOWN)).toThrow(
      'make() has no option ttl. Its options are lease_ms, retention_ms, operations.',
    )
  })

  it('takes no name that every object has for an option', () => {
    for (const name of ['toString', 'constructor', 'hasOwnProperty']) {
      expect(() => refuseUnknown('make()', { [name]: 1 }, KNOWN)).toThrow(`no option ${name}`)
    }
    expect(() => refuseUnknown('make()', JSON.parse('{"__proto__": 1}'), KNOWN)).toThrow(
      'no option __proto__',
    )
  })

  it.each([[null], [undefined], ['lease_ms'], [7], [[]]])(
    'refuses %j, which is no object of options',
    (given) => {
      expect(() => refuseUnknown('make()', given, KNOWN)).toThrow('make() takes an object of options.')
    },
  )

  it('shows the beginning of a name that is very long', () => {
    expect(nearest('x'.repeat(100_000), Object.keys(KNOWN))).toBeNull()
    expect(() => refuseUnknown('make()', { ['x'.repeat(1_000)]: 1 }, KNOWN)).toThrow(
      `no option ${'x'.repeat(64)}….`,
    )
  })
})
