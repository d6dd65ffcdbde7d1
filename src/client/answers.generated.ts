/** Written from the table of errors by `npm run client-answers`. Change the table, then run it again. */
import type { Evidence } from './options.ts'

type Meaning = readonly [retryable: boolean, executed: Evidence]

const of = (retryable: boolean, executed: Evidence, codes: string): [string, Meaning][] =>
  codes.split(' ').map((code) => [code, [retryable, executed]])

/** Codes that mean something else than their status does: whether the request may be sent again, and what the answer proves. */
export const TOLD: Readonly<Record<string, Meaning>> = /* @__PURE__ */ Object.fromEntries([
  ...of(false, 'unknown', 'handler_failed key_erased key_reused parked reply_not_json'),
  ...of(false, 'yes', 'reply_not_kept'),
  ...of(true, 'not_by_this_request', 'closed deadline_exceeded key_just_expired limits_unavailable not_applied not_executed overloaded pool_exhausted serialization_failed store_unavailable'),
])
