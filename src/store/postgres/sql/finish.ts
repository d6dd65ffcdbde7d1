import { interval } from './columns.ts'

/** Every write of an owner carries its fence; an old one changes no row. */
const OWNED = `account = $1 AND operation = $2 AND key = $3 AND fence = $4::bigint AND state = 'in_progress'`

/** Parameters: 1-4 id and fence, 5 retention in ms, 6 status, 7 headers, 8 body, 9 schema, 10 id of the key that sealed it. */
export const complete = (schema: string) => `
UPDATE ${schema}.records
SET state = 'completed', lease_until = NULL, changed_at = clock_timestamp(),
    expires_at = clock_timestamp() + ${interval('$5')},
    reply_status = $6, reply_headers = $7, reply_body = $8, reply_schema = $9, reply_key_id = $10
WHERE ${OWNED}
RETURNING fence`

/** Parameters: 1-4 id and fence, 5 retention in ms, 6 error code, 7 error message. */
export const release = (schema: string) => `
UPDATE ${schema}.records
SET state = 'retryable', lease_until = NULL, changed_at = clock_timestamp(),
    expires_at = clock_timestamp() + ${interval('$5')}, error_code = $6, error_message = $7
WHERE ${OWNED}
RETURNING fence`

/** Parameters: 1-4 id and fence, 5 error code, 6 error message. */
export const doubt = (schema: string) => `
UPDATE ${schema}.records
SET state = 'unknown', lease_until = NULL, changed_at = clock_timestamp(), error_code = $5, error_message = $6
WHERE ${OWNED}
RETURNING fence`

/**
 * The owner vanished: the fence stays, because nobody takes the record.
 * Parameters: 1-4 id and fence, 5 error code, 6 error message.
 */
export const doubtVanished = (schema: string) => `
UPDATE ${schema}.records
SET state = 'unknown', lease_until = NULL, changed_at = clock_timestamp(), error_code = $5, error_message = $6
WHERE ${OWNED} AND lease_until <= clock_timestamp()
RETURNING fence`

/** Parameters: 1-4 id and fence, 5 lease in ms. */
export const extend = (schema: string) => `
UPDATE ${schema}.records
SET lease_until = clock_timestamp() + ${interval('$5')}
WHERE ${OWNED}
RETURNING fence`
