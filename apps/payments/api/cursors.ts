import { Refused } from '../problems.ts'

/**
 * Lists of the library have cursors of their own. One that it does not know, or that holds what the database cannot take (its
 * errors of class 22), is a mistake of the client's here.
 */
export async function withCursor<T>(cursor: string | undefined, list: () => Promise<T>): Promise<T> {
  try {
    return await list()
  } catch (error) {
    const { code } = error as { code?: unknown }
    const isWrong = code === 'option_invalid' || /^22[0-9A-Z]{3}$/.test(`${code}`)
    if (cursor === undefined || !isWrong) throw error
    throw new Refused('invalid_request', {
      field: 'cursor',
      detail: 'cursor is not the next_cursor of a page of this list.',
    })
  }
}
