import { describe, expect, it } from 'vitest'
import { validate } from './validate.ts'

const schemaOf = (messages: readonly string[]) => ({
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    validate: () => ({ issues: messages.map((message) => ({ message, path: ['a'] })) }),
  },
})
const told = async (message: string, value: unknown) => {
  const result = await validate(schemaOf([message]), value)
  return 'issues' in result ? result.issues[0]!.message : null
}
const NOT_VALID = 'It is not valid.'

describe('what a schema says', () => {
  it.each([
    ['expected a number', { amount: 'five' }, 'expected a number'],
    ['expected a number, received "five"', { amount: 'five' }, NOT_VALID],
    ['expected < 10, received 12', { amount: 12 }, NOT_VALID],
    ['unknown member 4111 x', { '4111 x': 1 }, NOT_VALID],
    ['unknown member amount', { amount: 1 }, 'unknown member amount'],
    ['it ends with secret', { deep: [{ deeper: ['secret'] }] }, NOT_VALID],
    ['a sentence '.repeat(100), {}, NOT_VALID],
  ])('%j about %j is told as %j', async (message, value, expected) => {
    expect(await told(message, value)).toBe(expected)
  })

  it('is told without what was sent where a body has too many members to compare', async () => {
    const value = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`k ${i}`, i]))
    expect(await told('expected a number', value)).toBe(NOT_VALID)
  })

  it('is compared with a body that was read once, however many messages there are', async () => {
    let reads = 0
    const value = new Proxy({ a: 1 } as object, {
      ownKeys(target) {
        reads += 1
        return Reflect.ownKeys(target)
      },
    })
    await validate(schemaOf(Array.from({ length: 50 }, (_, i) => `message ${i}`)), value)
    expect(reads).toBe(1)
  })
})
