import { describe, expect, it } from 'vitest'
import { LIMITS } from '../core/limits.ts'
import { type KeyRules, keyRules } from './rules.ts'

const optionInvalid = expect.objectContaining({ code: 'option_invalid' })

describe('keyRules', () => {
  it('fills in the defaults', () => {
    expect(keyRules()).toMatchObject({ lengthMin: LIMITS.keyLengthMin, allowSensitive: false })
    expect(keyRules().issued).toBe('accepted')
    expect(keyRules({ issued: 'required' }).issued).toBe('required')
    expect(keyRules({ lengthMin: 20 })).toMatchObject({ lengthMin: 20, allowSensitive: false })
  })

  it('gives resolved rules back as they are', () => {
    const rules = keyRules({ allowSensitive: true })
    expect(keyRules(rules)).toBe(rules)
    expect(Object.isFrozen(rules)).toBe(true)
  })

  it.each([0, -1, 1.5, 256, Number.NaN, '8'])('refuses lengthMin %s', (lengthMin) => {
    expect(() => keyRules({ lengthMin } as KeyRules)).toThrow(optionInvalid)
  })

  it.each([null, 'rules', { allowSensitive: 1 }, { minLength: 3 }, { issued: 'never' }, { issued: true }])(
    'refuses %j',
    (rules) => {
      expect(() => keyRules(rules as unknown as KeyRules)).toThrow(optionInvalid)
    },
  )
})
