/**
 * What version 0.1.0 sends: its statements, as they were. That version knows migrations up to 0006, and may run beside a newer one
 * on the newer one's schema.
 */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'

export const KNOWN_MIGRATION = 6

const TAKE_OVER = `
WITH previous AS (
  SELECT * FROM onlyonce.records
  WHERE account = $1 AND operation = $2 AND key = $3 AND fence = $4::bigint AND state = $5
    AND (state <> 'in_progress' OR lease_until <= clock_timestamp())
    AND (state = 'expired' OR (
      (version IS NULL OR version = ANY ($17::text[]))
      AND (input_key_id IS NULL OR input_key_id = ANY ($18::text[]))
      AND (progress_key_id IS NULL OR progress_key_id = ANY ($18::text[]))))
  FOR UPDATE
), taken AS (
  UPDATE onlyonce.records AS r
  SET state = 'in_progress', fence = r.fence + 1, attempt_id = $6::uuid, owner = $7, trace = $8,
      fingerprint = CASE WHEN r.state = 'expired' THEN coalesce($9::bytea, r.fingerprint) ELSE r.fingerprint END,
      fingerprint_key_id = CASE WHEN r.state = 'expired' THEN coalesce($10, r.fingerprint_key_id) ELSE r.fingerprint_key_id END,
      attempted_at = clock_timestamp(), changed_at = clock_timestamp(),
      lease_until = clock_timestamp() + ($11::float8 * interval '1 millisecond'), expires_at = NULL,
      reply_status = NULL, reply_headers = NULL, reply_body = NULL, reply_schema = NULL, reply_key_id = NULL,
      error_code = NULL, error_message = NULL, waits_for = NULL, look_at = NULL,
      version = CASE WHEN r.state = 'expired' THEN $12 ELSE coalesce(r.version, $12) END,
      input = CASE WHEN r.state = 'expired' OR r.input IS NULL THEN $13::bytea ELSE r.input END,
      input_key_id = CASE WHEN r.state = 'expired' OR r.input IS NULL THEN $14 ELSE r.input_key_id END,
      progress = CASE WHEN r.state = 'expired' THEN NULL ELSE r.progress END,
      progress_key_id = CASE WHEN r.state = 'expired' THEN NULL ELSE r.progress_key_id END,
      points = CASE WHEN r.state = 'expired' THEN NULL ELSE r.points END,
      recovery_point = CASE WHEN r.state = 'expired' THEN NULL ELSE r.recovery_point END,
      looks = CASE WHEN r.state IN ('expired', 'retryable') THEN NULL ELSE r.looks END,
      deadline_at = CASE WHEN $12::text IS NULL THEN r.deadline_at ELSE clock_timestamp() + ($15::float8 * interval '1 millisecond') END,
      retention_ms = coalesce($16::bigint, r.retention_ms),
      point_at = CASE WHEN r.state = 'expired' THEN clock_timestamp() ELSE coalesce(r.point_at, clock_timestamp()) END,
      sent_until = CASE r.state
        WHEN 'in_progress' THEN greatest(r.sent_until, r.lease_until)
        WHEN 'unknown' THEN coalesce(r.sent_until, r.changed_at)
        WHEN 'expired' THEN NULL
        ELSE r.sent_until END
  FROM previous
  WHERE r.account = $1 AND r.operation = $2 AND r.key = $3 AND r.fence = previous.fence
  RETURNING r.*, r.ctid AS place
), kept AS (
  INSERT INTO onlyonce.attempts
    (account, operation, key, fence, attempt_id, owner, started_at, ended_at, outcome, error_code, error_message)
  SELECT previous.account, previous.operation, previous.key, previous.fence, previous.attempt_id, previous.owner,
    previous.attempted_at, clock_timestamp(),
    CASE previous.state WHEN 'in_progress' THEN 'abandoned' ELSE previous.state END,
    previous.error_code, previous.error_message
  FROM previous, taken
)
SELECT r.fence, r.place FROM taken AS r`

const SUPERSEDE = `
WITH previous AS (
  SELECT * FROM onlyonce.records
  WHERE account = $1 AND operation = $2 AND key = $3 AND fence = $4::bigint AND state = $5
    AND (state <> 'in_progress' OR lease_until <= clock_timestamp())
  FOR UPDATE
), taken AS (
  UPDATE onlyonce.records AS r
  SET state = $6, fence = r.fence + 1, attempt_id = $7::uuid, owner = $8,
      fingerprint = $9::bytea, fingerprint_key_id = $10, trace = $11,
      attempted_at = clock_timestamp(), changed_at = clock_timestamp(),
      lease_until = clock_timestamp() + ($12::float8 * interval '1 millisecond'),
      expires_at = clock_timestamp() + ($13::float8 * interval '1 millisecond'),
      reply_status = $14::smallint, reply_headers = $15, reply_body = $16::bytea, reply_schema = $17::smallint,
      reply_key_id = $18, error_code = $19, error_message = $20
  FROM previous
  WHERE r.account = $1 AND r.operation = $2 AND r.key = $3 AND r.fence = previous.fence
  RETURNING r.fence
), kept AS (
  INSERT INTO onlyonce.attempts
    (account, operation, key, fence, attempt_id, owner, started_at, ended_at, outcome, error_code, error_message)
  SELECT account, operation, key, previous.fence, attempt_id, owner, attempted_at, clock_timestamp(),
    CASE state WHEN 'in_progress' THEN 'abandoned' ELSE state END, error_code, error_message
  FROM previous, taken
)
SELECT fence FROM taken`

const FIND_DUE = `
SELECT account, operation, key, fence, state
FROM onlyonce.records
WHERE look_at <= now() AND state = 'unknown'
  AND (operation, version) IN (SELECT * FROM unnest($1::text[], $2::text[]))
ORDER BY look_at
LIMIT $3`

export interface Id {
  readonly account: string
  readonly operation: string
  readonly key: string
}

/** Takes an operation over, as a worker does; from whatever state it is in. */
export async function takeOver(on: pg.Pool, id: Id): Promise<number> {
  const { fence, state, version } = await look(on, id)
  const claim = [randomUUID(), 'version 0.1.0', null, null, null, '60000']
  const values = [...where(id, fence, state), ...claim, null, null, null, null, null, [version], []]
  return (await on.query(TAKE_OVER, values)).rows.length
}

/** Takes a record for a handler. */
export async function claim(on: pg.Pool, id: Id): Promise<number> {
  const { fence, state, fingerprint, fingerprint_key_id: fingerprintKeyId } = await look(on, id)
  const head = ['in_progress', randomUUID(), 'version 0.1.0', fingerprint, fingerprintKeyId, null, '60000']
  const values = [...where(id, fence, state), ...head, null, null, null, null, null, null, null, null]
  return (await on.query(SUPERSEDE, values)).rows.length
}

/** What its reconciler finds, among all of an operation. */
export async function findDue(on: pg.Pool, operation: string, version: string): Promise<string[]> {
  const { rows } = await on.query(FIND_DUE, [[operation], [version], 100])
  return rows.map(({ key }) => key)
}

const where = ({ account, operation, key }: Id, fence: string, state: string) => [
  account,
  operation,
  key,
  fence,
  state,
]

async function look(on: pg.Pool, { account, operation, key }: Id) {
  const text = 'SELECT * FROM onlyonce.records WHERE account = $1 AND operation = $2 AND key = $3'
  return (await on.query(text, [account, operation, key])).rows[0]
}
