/**
 * The rows of limits: one for each window of each subject. `key` names limiter, window and subject, the last as a digest. Its
 * columns are those of rate-limiter-flexible, and `over`, which holds what did not fit of the last take: so a statement
 * can tell how much was there before it, which RETURNING cannot before PostgreSQL 18.
 *
 * Counts of rates are not worth a flush of the log at each commit: after a crash of the server they begin anew, as they do
 * every second anyway. Counts of velocity, which are of minutes and days, are kept.
 */
export const RATES = 'rate_limits'
export const VELOCITIES = 'velocity_limits'

export type Table = typeof RATES | typeof VELOCITIES

/**
 * All in one transaction, as one message: CREATE IF NOT EXISTS fails when two do it at once. A session learns what
 * others have made when it opens a table and not when it gets a lock like this, so one is opened in between. Half of each page stays
 * free, so that a count is written beside the one before it.
 */
export const install = (schema: string): string => `
  SELECT pg_advisory_xact_lock(hashtextextended('onlyonce limits of ${schema}', 0));
  SELECT FROM pg_catalog.pg_namespace LIMIT 1;
  CREATE SCHEMA IF NOT EXISTS ${schema};
  CREATE UNLOGGED TABLE IF NOT EXISTS ${schema}.${RATES} (
    key varchar(255) PRIMARY KEY,
    points integer NOT NULL DEFAULT 0,
    expire bigint NOT NULL,
    over integer NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50);
  CREATE TABLE IF NOT EXISTS ${schema}.${VELOCITIES} (
    key varchar(255) PRIMARY KEY,
    points integer NOT NULL DEFAULT 0,
    expire bigint NOT NULL,
    over integer NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50);`

export const INSTALLED = `SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL AS installed`

/**
 * The database's clock, for all processes the same. Of the statement and not of the moment: two readings in one statement
 * would differ, and one half of a row could begin a window that the other half has not ended.
 */
const NOW_MS = `(extract(epoch FROM statement_timestamp()) * 1000)::bigint`

/** How much fits of $3 takes of $2 points each where $4 are allowed: whole takes only. */
const FIRST = `LEAST($3::int, $4::int / $2::int) * $2::int`
const MORE = `LEAST($3::int, GREATEST(0, $4::int - w.points) / $2::int) * $2::int`

/**
 * Takes what fits, and nothing of what does not. `points` comes back as if all had been taken, which is how
 * rate-limiter-flexible tells that there was too little.
 */
export const take = (schema: string, table: Table): string => `
  INSERT INTO ${schema}.${table} AS w (key, points, expire, over)
  VALUES ($1, ${FIRST}, ${NOW_MS} + $5::bigint, $2::int * $3::int - ${FIRST})
  ON CONFLICT (key) DO UPDATE SET
    points = CASE WHEN w.expire <= ${NOW_MS} THEN EXCLUDED.points ELSE w.points + ${MORE} END,
    expire = CASE WHEN w.expire <= ${NOW_MS} THEN EXCLUDED.expire ELSE w.expire END,
    over = CASE WHEN w.expire <= ${NOW_MS} THEN EXCLUDED.over ELSE $2::int * $3::int - ${MORE} END
  RETURNING points + over AS points, expire, GREATEST(0, expire - ${NOW_MS}) AS left_ms`

/** Only to the window that they were taken of: what is given to a later one would let more than its points through. */
export const giveBack = (schema: string, table: Table): string => `
  UPDATE ${schema}.${table} SET points = GREATEST(0, points - $2::int)
  WHERE key = $1 AND expire = $3::bigint
  RETURNING points, expire, GREATEST(0, expire - ${NOW_MS}) AS left_ms`

export const peek = (schema: string, table: Table): string => `
  SELECT points, expire, expire - ${NOW_MS} AS left_ms
  FROM ${schema}.${table} WHERE key = $1 AND expire > ${NOW_MS}`

export const forget = (schema: string, table: Table): string => `
  DELETE FROM ${schema}.${table} WHERE key = $1`

/** Some of the windows that ended an hour ago. A row that began anew meanwhile stays: the condition is looked at again. */
export const sweep = (schema: string, table: Table): string => `
  DELETE FROM ${schema}.${table}
  WHERE expire < ${NOW_MS} - 3600000
    AND key IN (SELECT key FROM ${schema}.${table} WHERE expire < ${NOW_MS} - 3600000 LIMIT $1)`
