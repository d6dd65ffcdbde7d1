import { ATTEMPT_COLUMNS, RECORD_AS_TEXT, recordColumns } from './columns.ts'

/**
 * Looks many keys up in one statement. `$1`, `$2` and `$3` are arrays of accounts, operations and keys.
 *
 * LATERAL with OFFSET 0 keeps the planner at one index scan for each key. A plain join was tried first: its
 * generic plan, made while the table was small, is a hash join over the whole table.
 */
export const lookMany = (schema: string) => `
SELECT k.position, ${recordColumns}
FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS k (account, operation, key, position)
CROSS JOIN LATERAL (
  SELECT * FROM ${schema}.records
  WHERE account = k.account AND operation = k.operation AND key = k.key
  OFFSET 0
) AS r`

export const lookOne = (schema: string) => `
SELECT ${recordColumns}
FROM ${schema}.records AS r
WHERE r.account = $1 AND r.operation = $2 AND r.key = $3`

/** For the transactions of others, whose clients read columns in their own ways. */
export const lookOneAsText = (schema: string) => `
SELECT ${RECORD_AS_TEXT}
FROM ${schema}.records AS r
WHERE r.account = $1 AND r.operation = $2 AND r.key = $3`

export const lookHistory = (schema: string) => `
SELECT ${ATTEMPT_COLUMNS.join(', ')}
FROM ${schema}.attempts
WHERE account = $1 AND operation = $2 AND key = $3
ORDER BY fence DESC
LIMIT $4`

/** Whether an attempt of this key is known to have been superseded. */
export const lookAttempt = (schema: string) => `
SELECT outcome FROM ${schema}.attempts
WHERE account = $1 AND operation = $2 AND key = $3 AND attempt_id = $4`
