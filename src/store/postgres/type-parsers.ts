/** What pg makes of the values of a row can be changed for the whole process, with pg.types.setTypeParser. */
import { OnlyonceError } from '../../core/errors.ts'

/** A whole number, from what a parser makes of one: a number, a text or a BigInt. */
export function wholeNumber(value: unknown, type: string): number {
  const number = typeof value === 'object' ? Number.NaN : Number(value)
  return Number.isSafeInteger(number) ? number : refuse(type)
}

export function plainText(value: unknown): string {
  return typeof value === 'string' ? value : refuse('text')
}

function refuse(type: string): never {
  throw new OnlyonceError('option_invalid', {
    detail: `A type parser of pg (pg.types.setTypeParser) makes something else of ${type}, which onlyonce cannot read. Give it to single queries (types) in place of all.`,
  })
}
