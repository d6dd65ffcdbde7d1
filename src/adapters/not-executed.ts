import { OnlyonceError } from '../errors.ts'

/** Whether a handler has said, by what it threw, that nothing was done. */
export function isNotExecuted(error: unknown): boolean {
  return error instanceof OnlyonceError && error.code === 'not_executed'
}
