import { OnlyonceError } from 'onlyonce'
import { Refused } from '../problems.ts'

/** Lists of the library have cursors of their own. One that it does not know is a mistake of the client's here. */
export async function withCursor<T>(cursor: string | undefined, list: () => Promise<T>): Promise<T> {
  try {
    return await list()
  } catch (error) {
    const about_cursor =
      cursor !== undefined && error instanceof OnlyonceError && error.code === 'option_invalid'
    if (!about_cursor) throw error
    throw new Refused('invalid_request', {
      field: 'cursor',
      detail: 'cursor is not the next_cursor of a page of this list.',
    })
  }
}
