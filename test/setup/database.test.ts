import { beforeAll, expect, test } from 'vitest'
import { withClient } from './client.ts'
import { type FreshDatabase, freshDatabase } from './database.ts'
import { startDurableServer } from './durable-server.ts'

const COUNT_TABLES = "SELECT count(*)::int AS count FROM pg_tables WHERE schemaname = 'onlyonce'"
const FIND_DATABASE = 'SELECT 1 FROM pg_database WHERE datname = $1'

let shared: FreshDatabase
let earlier: FreshDatabase[] = []

beforeAll(async () => {
  shared = await freshDatabase()
})

test('clones made at once are migrated and separate', async () => {
  earlier = await Promise.all(Array.from({ length: 8 }, () => freshDatabase()))
  expect(new Set(earlier.map(({ name }) => name)).size).toBe(8)
  const { rows } = await earlier[0]!.pool().query<{ count: number }>(COUNT_TABLES)
  expect(rows[0]?.count).toBeGreaterThan(0)
  // Never given back: the clean-up must manage all the same.
  await earlier[1]!.pool().connect()
})

test('a database lives as long as the test, or the file, that made it', async () => {
  const pool = shared.pool({ max: 1 })
  for (const { name } of earlier) expect((await pool.query(FIND_DATABASE, [name])).rows).toEqual([])
  expect((await pool.query(FIND_DATABASE, [shared.name])).rows).toHaveLength(1)
})

test('a durable server keeps its schema when it is killed', async () => {
  const server = await startDurableServer()
  await server.kill()
  await server.restart()
  const { rows } = await withClient(server.url, (client) => client.query<{ count: number }>(COUNT_TABLES))
  expect(rows[0]?.count).toBeGreaterThan(0)
})
