/** What `doctor` and other looks over all of the tables ask. All of it only reads, and locks nothing. */
import { interval } from './columns.ts'

/** What the server is, and what it makes of this session. */
export const SERVER = `
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS version_num,
  pg_is_in_recovery() AS standby, current_setting('server_encoding') AS encoding,
  (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms, pg_backend_pid() AS pid,
  current_user::text AS role, r.rolsuper AS superuser, r.rolconnlimit AS role_connections_max,
  d.datconnlimit AS database_connections_max,
  (SELECT count(*)::int FROM pg_stat_activity AS a WHERE a.backend_type = 'client backend') AS connections,
  (SELECT count(*)::int FROM pg_stat_activity AS a WHERE a.datname = d.datname) AS database_connections,
  (SELECT count(*)::int FROM pg_stat_activity AS a WHERE a.usename = current_user) AS role_connections,
  (SELECT count(*)::int FROM pg_stat_replication) AS standbys,
  EXISTS (SELECT FROM pg_extension AS x WHERE x.extname = 'citus') AS citus
FROM pg_roles AS r, pg_database AS d
WHERE r.rolname = current_user AND d.datname = current_database()`

/** Durations are in the unit of the setting. One that this server does not know has no row. Parameters: 1 names. */
export const SETTINGS = `
SELECT name, setting, unit FROM pg_settings WHERE name = ANY ($1::text[])`

/** By the object's number: where the role may not use the schema, no name in it can be asked about. Parameters: 1 schema. */
export const SCHEMA_RIGHTS = `
SELECT has_schema_privilege(n.oid, 'USAGE') AS usage, has_schema_privilege(n.oid, 'CREATE') AS creates,
  pg_has_role(n.nspowner, 'USAGE') AS owns
FROM pg_namespace AS n WHERE n.nspname = $1`

/** Rights that the role lacks, one row for each table. Parameters: 1 schema. */
export const MISSING_RIGHTS = `
SELECT c.relname AS name, string_agg(w.wanted, ', ' ORDER BY w.place) AS missing
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace,
  (VALUES (1, 'SELECT'), (2, 'INSERT'), (3, 'UPDATE'), (4, 'DELETE')) AS w (place, wanted)
WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND NOT has_table_privilege(c.oid, w.wanted)
GROUP BY c.relname ORDER BY c.relname`

/** Parameters: 1 schema. */
export const TABLES = `
SELECT c.relname AS name, pg_total_relation_size(c.oid)::float8 AS size_bytes,
  coalesce(s.n_live_tup, 0)::float8 AS live, coalesce(s.n_dead_tup, 0)::float8 AS dead,
  coalesce('autovacuum_enabled=false' = ANY (c.reloptions) OR 'autovacuum_enabled=off' = ANY (c.reloptions), false) AS unvacuumed
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid
WHERE n.nspname = $1 AND c.relkind = 'r'
ORDER BY c.relname`

/** Parameters: 1 schema. */
export const INDEXES = `
SELECT c.relname AS name, i.indisvalid AND i.indisready AS valid
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1`

/** Triggers that were turned off. Parameters: 1 schema. */
export const DISABLED_TRIGGERS = `
SELECT t.tgname AS name FROM pg_trigger AS t
JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND NOT t.tgisinternal AND t.tgenabled = 'D'`

/** How many records a reaper would remove now, and since when the oldest waits. Parameters: 1 how long they are kept at least in ms. */
export const countReapable = (schema: string) => `
SELECT count(*)::float8 AS count, (extract(epoch FROM clock_timestamp() - min(r.expires_at)) * 1000)::float8 AS oldest_age_ms
FROM ${schema}.records AS r
WHERE r.state IN ('completed', 'retryable') AND r.expires_at <= now() AND r.changed_at <= now() - ${interval('$1')}`

/** Records that wait for a reaper for longer than so many ms, up to a number of them. Parameters: 1 ms, 2 how many are counted. */
export const countOverdue = (schema: string) => `
SELECT count(*)::int AS count FROM (
  SELECT FROM ${schema}.records AS r
  WHERE r.state IN ('completed', 'retryable') AND r.expires_at <= now() - ${interval('$1')}
    AND r.changed_at <= now() - ${interval('$1')}
  LIMIT $2
) AS overdue`
