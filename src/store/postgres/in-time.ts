import type { PoolClient } from 'pg'
import { OnlyonceError } from '../../core/errors.ts'
import { sqlState } from './classify.ts'
import { destroy } from './wire.ts'

/**
 * Uses a connection for so long at most; then it is ended. What pg says about that reads as if the server had ended it, so the error says
 * instead that the server did not answer.
 */
export async function inTime<T>(client: PoolClient, maxMs: number, use: () => Promise<T>): Promise<T> {
  let late = false
  const timer = setTimeout(() => {
    late = true
    destroy(client)
  }, maxMs)
  try {
    return await use()
  } catch (error) {
    const told = error instanceof OnlyonceError || sqlState(error) !== null
    throw late && !told ? noAnswer() : error
  } finally {
    clearTimeout(timer)
  }
}

/** The server has not answered in time. With the code of the operating system for that, as a socket's own time-out has. */
export function noAnswer(): Error {
  return Object.assign(new Error('The database did not answer in time.'), { code: 'ETIMEDOUT' })
}
