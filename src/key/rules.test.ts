import { describe, expect, it } from 'vitest'
import { LIMITS } from '../limits.ts'
import { type KeyRules, keyRules } from './rules.ts'

const optionInvalid = expect.objectContaining({ code: 'option_invalid' })

describe('keyRules', () => {
  it('fills in the defaults', () => {
    expect(keyRules()).toMatchObject({ length_min: LIMITS.key_length_min, allow_sensitive: false })
    expect(keyRules().issued).toBe('accepted')
    expect(keyRules({ issued: 'required' }).issued).toBe('required')
    expect(keyRules({ length_min: 20 })).toMatchObject({ length_min: 20, allow_sensitive: false })
  })

  it('gives resolved rules back as they are', () => {
    const rules = keyRules({ allow_sensitive: true })
    expect(keyRules(rules)).toBe(rules)
    expect(Object.isFrozen(rules)).toBe(true)
  })

  it.each([0, -1, 1.5, 256, Number.NaN, '8'])('refuses length_min %s', (length_min) => {
    expect(() => keyRules({ length_min } as KeyRules)).toThrow(optionInvalid)
  })

  it.each([null, 'rules', { allow_sensitive: 1 }, { minLength: 3 }, { issued: 'never' }, { issued: true }])(
    'refuses %j',
    (rules) => {
      expect(() => keyRules(rules as unknown as KeyRules)).toThrow(optionInvalid)
    },
  )
})
