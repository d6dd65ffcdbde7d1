/** Looks over a database as a whole, for people who have to find out what is wrong with it. Only reads. */
import type { PoolClient } from 'pg'
import { LIMITS } from '../../core/limits.ts'
import type { KeyPurpose } from '../../core/ring.ts'
import type { Queryable } from '../contract.ts'
import { SHIPPED } from './migrations.generated.ts'
import { readKeyIds } from './sql/key-ids.ts'
import * as sql from './sql/survey.ts'

/** A key that a process of the service has started with as its current one. */
export interface KeyInUse {
  readonly purpose: KeyPurpose
  readonly keyId: string
  readonly digest: string | null
}

export async function keysInUse(on: Queryable, schema: string): Promise<readonly KeyInUse[]> {
  const { rows } = await on.query(readKeyIds(schema))
  return rows.map(({ purpose, key_id, digest }) => ({ purpose, keyId: key_id, digest }))
}

/** What a reaper would remove. */
export interface Reapable {
  readonly count: number
  /** How long the oldest of them is past its retention. */
  readonly oldestAgeMs: number
}

export async function countReapable(on: Queryable, schema: string, keptMinMs: number): Promise<Reapable> {
  const { rows } = await on.query(sql.countReapable(schema), [keptMinMs])
  return { count: rows[0].count, oldestAgeMs: Math.round(rows[0].oldest_age_ms ?? 0) }
}

export interface Server {
  readonly version: string
  readonly versionNumber: number
  readonly standby: boolean
  readonly encoding: string
  readonly role: string
  readonly superuser: boolean
  readonly connections: number
  readonly databaseConnections: number
  readonly roleConnections: number
  /** -1: no limit. */
  readonly roleConnectionsMax: number
  readonly databaseConnectionsMax: number
  readonly standbys: number
  readonly citus: boolean
  /** The database's clock minus that of this process, and by how much this may be wrong. */
  readonly clockAheadMs: number
  readonly clockErrorMs: number
  /** Another process than the one that was connected to has answered: a pooler is in between. */
  readonly pooled: boolean
}

export interface SchemaFacts {
  /** Null: there is no such schema. */
  readonly rights: { readonly usage: boolean; readonly creates: boolean; readonly owns: boolean } | null
  readonly missingRights: readonly { readonly table: string; readonly missing: string }[]
  readonly tables: readonly TableFacts[]
  /** Indexes that the migrations make and that are not there, or cannot be used. */
  readonly missingIndexes: readonly string[]
  readonly invalidIndexes: readonly string[]
  readonly disabledTriggers: readonly string[]
}

export interface TableFacts {
  readonly name: string
  readonly sizeBytes: number
  readonly live: number
  readonly dead: number
  readonly unvacuumed: boolean
}

/** `clock`: milliseconds since the epoch, by this process. */
export async function surveyServer(client: PoolClient, clock: () => number): Promise<Server> {
  // Once for nothing: the first statement of a connection takes longer, and the clocks are compared by the second.
  await client.query(sql.SERVER)
  const before = clock()
  const { rows } = await client.query(sql.SERVER)
  const after = clock()
  const row = rows[0]
  return {
    version: row.version,
    versionNumber: row.version_num,
    standby: row.standby,
    encoding: row.encoding,
    role: row.role,
    superuser: row.superuser,
    connections: row.connections,
    databaseConnections: row.database_connections,
    roleConnections: row.role_connections,
    roleConnectionsMax: row.role_connections_max,
    databaseConnectionsMax: row.database_connections_max,
    standbys: row.standbys,
    citus: row.citus,
    clockAheadMs: Math.round(row.now_ms - (before + after) / 2),
    clockErrorMs: Math.ceil((after - before) / 2),
    pooled: (client as unknown as { readonly processID: number | null }).processID !== row.pid,
  }
}

/** Settings of the session by name: durations and counts as numbers, in milliseconds where the server says so. */
export async function surveySettings(
  on: Queryable,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await on.query(sql.SETTINGS, [names])
  return new Map(
    rows.map(({ name, setting, unit }) => [name, unit === 's' ? `${Number(setting) * 1_000}` : `${setting}`]),
  )
}

export async function surveySchema(on: Queryable, schema: string): Promise<SchemaFacts> {
  const rights = (await on.query(sql.SCHEMA_RIGHTS, [schema])).rows[0] ?? null
  const missing = (await on.query(sql.MISSING_RIGHTS, [schema])).rows
  const tables = (await on.query(sql.TABLES, [schema])).rows
  const indexes = (await on.query(sql.INDEXES, [schema])).rows
  const triggers = (await on.query(sql.DISABLED_TRIGGERS, [schema])).rows
  const there = new Set(indexes.map(({ name }) => name))
  return {
    rights,
    missingRights: missing.map(({ name, missing }) => ({ table: name, missing })),
    tables: tables.map(({ name, size_bytes, live, dead, unvacuumed }) => ({
      name,
      sizeBytes: size_bytes,
      live,
      dead,
      unvacuumed,
    })),
    missingIndexes: indexesOfMigrations().filter((name) => !there.has(name)),
    invalidIndexes: indexes.filter(({ valid }) => !valid).map(({ name }) => name),
    disabledTriggers: triggers.map(({ name }) => name),
  }
}

/** How many records wait for a reaper for longer than they should, counted up to a number. */
export async function countOverdue(on: Queryable, schema: string, olderThanMs: number): Promise<number> {
  const { rows } = await on.query(sql.countOverdue(schema), [olderThanMs, LIMITS.overdueCountedMax])
  return rows[0].count
}

/** Read from the migrations themselves: a list beside them would be forgotten. */
function indexesOfMigrations(): readonly string[] {
  const text = SHIPPED.map((migration) => migration.text).join('\n')
  const made = [...text.matchAll(/CREATE (?:UNIQUE )?INDEX (\w+) ON|CONSTRAINT (\w+) PRIMARY KEY/g)].map(
    ([, index, key]) => index ?? key!,
  )
  const dropped = new Set([...text.matchAll(/DROP INDEX (?:\w+\.)?(\w+)/g)].map(([, name]) => name))
  return made.filter((name) => !dropped.has(name))
}
