import { interval } from './columns.ts'

/**
 * Every write of an owner carries its fence, and an old one changes no row; and its attempt id, because fences begin
 * anew when a record was deleted meanwhile.
 */
const SEEN = `account = $1 AND operation = $2 AND key = $3 AND fence = $4::bigint AND state = 'in_progress'`
export const OWNED = `${SEEN} AND attempt_id = $5::uuid`

/** Parameters: 1-5 id, fence and attempt id, 6 retention in ms, 7 status, 8 headers, 9 body, 10 schema, 11 id of the key that sealed it. */
export const complete = (schema: string) => `
UPDATE ${schema}.records
SET state = 'completed', lease_until = NULL, changed_at = clock_timestamp(),
    expires_at = clock_timestamp() + ${interval('$6')},
    reply_status = $7, reply_headers = $8, reply_body = $9, reply_schema = $10, reply_key_id = $11
WHERE ${OWNED}
RETURNING fence`

/** Parameters: 1-5 id, fence and attempt id, 6 retention in ms, 7 error code, 8 error message. */
export const release = (schema: string) => `
UPDATE ${schema}.records
SET state = 'retryable', lease_until = NULL, changed_at = clock_timestamp(),
    expires_at = clock_timestamp() + ${interval('$6')}, error_code = $7, error_message = $8
WHERE ${OWNED}
RETURNING fence`

/** Parameters: 1-5 id, fence and attempt id, 6 error code, 7 error message. */
export const doubt = (schema: string) => `
UPDATE ${schema}.records
SET state = 'unknown', lease_until = NULL, changed_at = clock_timestamp(), error_code = $6, error_message = $7
WHERE ${OWNED}
RETURNING fence`

/**
 * The owner vanished: the fence stays, because nobody takes the record.
 * Parameters: 1-4 id and fence, 5 error code, 6 error message.
 */
export const doubtVanished = (schema: string) => `
UPDATE ${schema}.records
SET state = 'unknown', lease_until = NULL, changed_at = clock_timestamp(), error_code = $5, error_message = $6
WHERE ${SEEN} AND lease_until <= clock_timestamp()
RETURNING fence`

/** Parameters: 1-5 id, fence and attempt id, 6 lease in ms. */
export const extend = (schema: string) => `
UPDATE ${schema}.records
SET lease_until = clock_timestamp() + ${interval('$6')}
WHERE ${OWNED}
RETURNING fence`
