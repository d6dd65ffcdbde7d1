import { isInside } from './columns.ts'

/**
 * Bounds on waiting, for the transaction that is open. SET takes no parameters, and the values are whole
 * numbers that were checked at the door. One SELECT with two set_config() was measured first: it costs a
 * transaction some 13 us more of the server's time, because it has a plan and gives a row.
 */
export const setLockWait = (ms: number) => `SET LOCAL lock_timeout = ${ms}`
export const setIdle = (ms: number) => `SET LOCAL idle_in_transaction_session_timeout = ${ms}`

/**
 * The same for a statement that is a transaction of its own. SET LOCAL works there too, and leaves a warning in the
 * log of the server each time.
 */
export const setLockWaitAlone = (ms: number) => `SELECT set_config('lock_timeout', '${ms}', true)`

/** A bound on the statements that follow in the same flush. */
export const setStatementMaxAlone = (ms: number) => `SELECT set_config('statement_timeout', '${ms}', true)`

/** What the session has by itself, in ms; pg_settings gives both in their base unit. */
export const READ_BOUNDS = `
SELECT setting FROM pg_settings
WHERE name IN ('lock_timeout', 'idle_in_transaction_session_timeout')
ORDER BY name DESC`

/**
 * Which transaction this is: its id, and where it runs, by which it is told from one with the same id on another server. The id is given to a
 * transaction when it first writes, or is asked for it as here; the statement behind this one writes.
 */
export const WHICH_TRANSACTION = `
SELECT pg_current_xact_id()::text AS xid,
  concat_ws('/', extract(epoch FROM pg_postmaster_start_time()), pg_backend_pid(), pg_current_xact_id()) AS key`

/** Gives a row inside the transaction. Parameters: 1 transaction. */
export const STILL_INSIDE = `SELECT 1 WHERE ${isInside('$1')}`

/** For `exclusive`: held until the transaction ends, and never waited for. */
export const TRY_LOCK = `SELECT pg_try_advisory_xact_lock($1::bigint)`
