/** Bounds on waiting, for the transaction that is open. Parameters: 1 lock timeout, 2 idle timeout, in ms. */
export const SET_BOUNDS = `
SELECT set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $2, true)`

export const SET_LOCK_WAIT = `SELECT set_config('lock_timeout', $1, true)`

/** What the session has by itself, in ms; pg_settings gives both in their base unit. */
export const READ_BOUNDS = `
SELECT setting FROM pg_settings
WHERE name IN ('lock_timeout', 'idle_in_transaction_session_timeout')
ORDER BY name DESC`

/** For `exclusive`: held until the transaction ends, and never waited for. */
export const TRY_LOCK = `SELECT pg_try_advisory_xact_lock($1::bigint)`
