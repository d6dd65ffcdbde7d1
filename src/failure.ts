import { maskCardNumbers } from './key/index.ts'
import { LIMITS } from './limits.ts'
import type { Failure } from './record/index.ts'

/** What an error leaves in the history: its code or name, and a short message without card numbers. */
export function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return { code: 'thrown', message: `A ${typeof error} was thrown.` }
  const code = (error as { code?: unknown }).code
  return {
    code: (typeof code === 'string' || typeof code === 'number' ? `${code}` : error.name).slice(0, 100),
    // PostgreSQL's text cannot hold NUL.
    message: maskCardNumbers(`${error.message}`.replaceAll('\0', '')).slice(
      0,
      LIMITS.error_message_length_max,
    ),
  }
}
