import { describe, expect, it } from 'vitest'
import { nearest, type OptionNames, refuseUnknown } from './options.ts'

interface Options {
  readonly leaseMs?: number
  readonly retentionMs?: number
  readonly operations?: readonly string[]
}

const KNOWN: OptionNames<Options> = { leaseMs: true, retentionMs: true, operations: true }

describe('refuseUnknown', () => {
  it('lets known options pass, also where they are undefined', () => {
    expect(() => refuseUnknown('make()', { leaseMs: 1, retentionMs: undefined }, KNOWN)).not.toThrow()
    expect(() => refuseUnknown('make()', {}, KNOWN)).not.toThrow()
  })

  it.each([
    ['lease_ms', 'leaseMs'],
    ['lease', 'leaseMs'],
    ['leeseMs', 'leaseMs'],
    ['retentoinMs', 'retentionMs'],
    ['operation', 'operations'],
  ])('says that %s may be meant for %s', (given, meant) => {
    expect(() => refuseUnknown('make()', { [given]: 1 }, KNOWN)).toThrow(
      `make() has no option ${given}. Did you mean ${meant}?`,
    )
  })

  it('names all options where none is near', () => {
    expect(() => refuseUnknown('make()', { ttl: 1 }, KNOWN)).toThrow(
      'make() has no option ttl. Its options are leaseMs, retentionMs, operations.',
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

  it.each([[null], [undefined], ['leaseMs'], [7], [[]]])(
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
