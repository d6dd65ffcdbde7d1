import { interval, JOB_COLUMNS } from './columns.ts'

/**
 * Takes jobs that are due and that no worker has, or has any more. Parameters: 1 names, 2 jobs at most, 3 claim id, 4 lease in ms.
 */
export const takeJobs = (schema: string) => `
WITH due AS MATERIALIZED (
  SELECT d.account, d.id
  FROM unnest($1::text[]) AS n (job) CROSS JOIN LATERAL (
    SELECT account, id, run_at FROM ${schema}.jobs
    WHERE job = n.job AND run_at <= now() AND (lease_until IS NULL OR lease_until <= clock_timestamp())
    ORDER BY run_at LIMIT $2::int
  ) AS d
  ORDER BY d.run_at LIMIT $2::int
)
UPDATE ${schema}.jobs AS j
SET attempts = j.attempts + 1, claim_id = $3::uuid, lease_until = clock_timestamp() + ${interval('$4')}
FROM due
WHERE j.account = due.account AND j.id = due.id AND j.run_at <= now()
  AND (j.lease_until IS NULL OR j.lease_until <= clock_timestamp())
RETURNING ${JOB_COLUMNS.join(', ')}`

/** Done jobs are gone; parameters: 1 claim id; arrays: 2 accounts, 3 ids. */
export const deleteDone = (schema: string) => `
DELETE FROM ${schema}.jobs AS j
USING unnest($2::text[], $3::uuid[]) AS k (account, id)
WHERE j.account = k.account AND j.id = k.id AND j.claim_id = $1::uuid`

/** But those with a key stay for a while, so that the key still says that it is done. */
export const keepDone = (schema: string) => `
UPDATE ${schema}.jobs AS j SET run_at = NULL, lease_until = NULL, done_at = clock_timestamp()
FROM unnest($2::text[], $3::uuid[]) AS k (account, id)
WHERE j.account = k.account AND j.id = k.id AND j.claim_id = $1::uuid AND j.run_at IS NOT NULL`

/** Parameters: 1 claim id; arrays: 2 accounts, 3 ids, 4 waits in ms (NULL: parked), 5 codes, 6 messages. */
export const failJobs = (schema: string) => `
UPDATE ${schema}.jobs AS j
SET run_at = clock_timestamp() + k.wait_ms * interval '1 millisecond', lease_until = NULL, error_code = k.code, error_message = k.message,
  parked_at = CASE WHEN k.wait_ms IS NULL THEN clock_timestamp() END
FROM unnest($2::text[], $3::uuid[], $4::float8[], $5::text[], $6::text[])
  AS k (account, id, wait_ms, code, message)
WHERE j.account = k.account AND j.id = k.id AND j.claim_id = $1::uuid AND j.run_at IS NOT NULL`

/** Parameters: 1 retention in ms, 2 jobs at most. */
export const deleteJobs = (schema: string) => `
WITH old AS MATERIALIZED (
  SELECT account, id FROM ${schema}.jobs
  WHERE done_at <= now() - ${interval('$1')} ORDER BY done_at LIMIT $2::int
),
gone AS (
  DELETE FROM ${schema}.jobs AS j USING old WHERE j.account = old.account AND j.id = old.id RETURNING 1
)
SELECT count(*) FROM gone`

/** Parameters: 1 account, 2 id. */
export const retryJob = (schema: string) => `
UPDATE ${schema}.jobs SET parked_at = NULL, run_at = clock_timestamp(), attempts = 0
WHERE account = $1 AND id = $2::uuid AND parked_at IS NOT NULL RETURNING 1`
