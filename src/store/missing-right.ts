import { OnlyonceError } from '../core/errors.ts'
import { isOfClass, memberOf } from '../core/thrown.ts'

/** Runs statements of the library alone. A right that the role lacks is told as what it is, and not in the words of the driver. */
export async function orMissingRight<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!isOfClass(error, Error) || memberOf(error, 'code') !== '42501') throw error
    throw new OnlyonceError('store_misconfigured', { detail: detailOf(error), cause: error })
  }
}

/** The server names the table in its language: where that is not English, the name is left out. */
function detailOf(error: Error): string {
  const found = /^permission denied for (?:table|relation|schema) ([a-z_]{1,63})$/.exec(
    `${memberOf(error, 'message')}`,
  )
  const where = found === null ? 'a table of the schema' : found[1]
  return `The role of this process lacks a right on ${where} (42501). Grant it; docs/guides/operating.md says what each role needs.`
}
