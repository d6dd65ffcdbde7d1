import fc from 'fast-check'
import { serializeItem } from 'structured-headers'
import { describe, expect, it } from 'vitest'
import { parseKeyHeader } from './header.ts'

const UUID = '8e03978e-40d5-43e8-bc93-6894a57f9324'
const code = (code: string) => expect.objectContaining({ code })

describe('parseKeyHeader', () => {
  it.each([
    [UUID, UUID],
    [`"${UUID}"`, UUID],
    [`  ${UUID}\t`, UUID],
    [`\t "${UUID}" `, UUID],
    [[UUID], UUID],
    ['"with, comma"', 'with, comma'],
    ['"with;semicolon"', 'with;semicolon'],
    ['"with space"', 'with space'],
    ['"with \\"quotes\\" and \\\\"', 'with "quotes" and \\'],
    ['back\\slash', 'back\\slash'],
    ["'single'", "'single'"],
    [':YWJjZGVmZ2g=:', ':YWJjZGVmZ2g=:'],
    ['a'.repeat(255), 'a'.repeat(255)],
    [`"${'\\"'.repeat(255)}"`, '"'.repeat(255)],
  ])('reads %j', (value, key) => {
    expect(parseKeyHeader(value)).toBe(key)
  })

  it.each([
    [undefined, 'key_missing'],
    [null, 'key_missing'],
    [[], 'key_missing'],
    [[UUID, UUID], 'key_repeated'],
    [[UUID, 'other-key-1'], 'key_repeated'],
    ['', 'key_empty'],
    [[''], 'key_empty'],
    ['""', 'key_empty'],
    ['   \t ', 'key_blank'],
    ['"        "', 'key_blank'],
    [`${UUID}, ${UUID}`, 'key_list'],
    [`${UUID},`, 'key_list'],
    [`"${UUID}", "${UUID}"`, 'key_list'],
    [`"${UUID}";a=1, "b"`, 'key_list'],
    [`"${UUID}",`, 'key_list'],
    [Array(8).fill(UUID).join(', '), 'key_list'],
    [`"${UUID}";x=1`, 'key_parameters'],
    [`"${UUID}";x="1,2"`, 'key_parameters'],
    [`"${UUID}";X=1`, 'key_parameters'],
    [`${UUID};x=1`, 'key_parameters'],
    [`${UUID};`, 'key_parameters'],
    [`"${UUID}`, 'key_malformed'],
    [`${UUID}"`, 'key_malformed'],
    [`"${UUID}, "`.slice(0, -1), 'key_malformed'],
    ['"', 'key_malformed'],
    ['"abc\\", defgh', 'key_malformed'],
    ['"abc\\defghi"', 'key_malformed'],
    ['"abcdefgh"ijk', 'key_malformed'],
    ['abc"def"ghi', 'key_malformed'],
    ['a'.repeat(256), 'key_too_long'],
    [`"${'a'.repeat(256)}"`, 'key_too_long'],
    ['abcdefg', 'key_too_short'],
    ['"abcdefg"', 'key_too_short'],
    ['abc\x01defgh', 'key_control_character'],
    ['"abc\tdefgh"', 'key_control_character'],
    ['abcdefgh\r\nX-Other: 1', 'key_control_character'],
    ['clé-de-douze', 'key_not_ascii'],
    ['"clé-de-douze"', 'key_not_ascii'],
    [`\u00a0${UUID}`, 'key_not_ascii'],
    ['abcd efgh', 'key_space'],
    ['"4242 4242 4242 4242"', 'key_card_number'],
    ['joe@example.com', 'key_email'],
  ])('refuses %j as %s', (value, expected) => {
    expect(() => parseKeyHeader(value)).toThrow(code(expected))
  })

  it('obeys the rules', () => {
    expect(parseKeyHeader('abc', { lengthMin: 3 })).toBe('abc')
    expect(parseKeyHeader('joe@example.com', { allowSensitive: true })).toBe('joe@example.com')
  })

  it('refuses a value that is no text', () => {
    expect(() => parseKeyHeader(12345678 as unknown as string)).toThrow(code('key_not_a_string'))
  })

  it('refuses a huge header at once', () => {
    const start = performance.now()
    for (const filler of ['a', ',', '"', '"\\', ' x', '; ']) {
      expect(() => parseKeyHeader(`"${filler.repeat(5_000_000)}`)).toThrow(code('key_too_long'))
    }
    expect(() => parseKeyHeader(' '.repeat(5_000_000))).toThrow(code('key_blank'))
    expect(performance.now() - start).toBeLessThan(10_000)
  })

  it('reads back what any client serializes as a structured-field string', () => {
    const keys = fc
      .string({ unit: 'grapheme-ascii', minLength: 8, maxLength: 255 })
      .filter((key) => key.trim() !== '')
    fc.assert(
      fc.property(keys, (key) => {
        expect(parseKeyHeader(serializeItem(key), { allowSensitive: true })).toBe(key)
      }),
    )
  })

  it('takes the bare and the quoted form for the same key', () => {
    const chars = fc.constantFrom(..."abcXYZ0189-_.:/+=~!#$%&'*^`|()<>@[]{}?")
    const keys = fc.array(chars, { minLength: 8, maxLength: 60 }).map((list) => list.join(''))
    fc.assert(
      fc.property(keys, (key) => {
        const rules = { allowSensitive: true }
        expect(parseKeyHeader(key, rules)).toBe(key)
        expect(parseKeyHeader(`"${key}"`, rules)).toBe(key)
      }),
    )
  })
})
