import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { onlyonce } from '../src/index.ts'
import { postgres } from '../src/store/postgres/index.ts'
import { type MigrateOptions, migrate } from '../src/store/postgres/migrate.ts'
import { SHIPPED as EMBEDDED } from '../src/store/postgres/migrations.generated.ts'
import { runProgram } from '../src/testing/crash-run.ts'
import { cleanUpLater } from './setup/clean-up.ts'
import { freshDatabase } from './setup/database.ts'
import { POOLER } from './setup/pooler.ts'

const SHIPPED = new URL('../migrations/', import.meta.url)
const MIGRATIONS = (await readdir(SHIPPED)).sort()
const NEXT = MIGRATIONS.length + 1
const NEWER = `${`${NEXT}`.padStart(4, '0')}_newer.sql`
const SCHEMA = 'payments_once'
const secret = 'a secret of more than thirty-two bytes.'

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  cleanUpLater(() => client.end())
  return client
}

/** The shipped migrations and one more, as a newer version of the library would bring it. */
async function newerFolder(text: string): Promise<URL> {
  const folder = await mkdtemp(join(tmpdir(), 'onlyonce-migrations-'))
  cleanUpLater(() => rm(folder, { recursive: true }))
  for (const name of MIGRATIONS) await writeFile(join(folder, name), await readFile(new URL(name, SHIPPED)))
  await writeFile(join(folder, NEWER), text)
  return pathToFileURL(`${folder}/`)
}

describe('migrations', () => {
  it.each(['read committed', 'serializable'])(
    'are done once when twenty processes start at once, and none fails, where sessions are %s',
    {
      timeout: 120_000,
    },
    async (level) => {
      const { url, name, direct, environment } = await freshDatabase()
      await direct({ max: 1 }).query(
        `ALTER DATABASE ${pg.escapeIdentifier(name)} SET default_transaction_isolation = '${level}'`,
      )
      const program = new URL('./programs/migrate.ts', import.meta.url)
      const results = await Promise.all(
        Array.from({ length: 20 }, () => runProgram({ program, env: environment, timeoutMs: 100_000 }, null)),
      )
      expect(results.map(({ code, stdout, stderr }) => ({ code, stdout, stderr }))).toEqual(
        results.map(() => ({ code: 0, stdout: 'executed', stderr: '' })),
      )
      const client = await connect(url)
      const { rows } = await client.query(`SELECT name FROM ${SCHEMA}.migrations ORDER BY version`)
      expect(rows).toEqual(MIGRATIONS.map((name) => ({ name })))
      const records = await client.query(`SELECT count(*)::int AS n FROM ${SCHEMA}.records`)
      expect(records.rows).toEqual([{ n: 20 }])
    },
  )

  it('are in the code as they are in the files, character by character', async () => {
    expect(EMBEDDED.map(({ name }) => name)).toEqual(MIGRATIONS)
    for (const { name, text } of EMBEDDED) {
      expect(text).toBe(await readFile(new URL(name, SHIPPED), 'utf8'))
    }
  })

  it('state which version a process has to know, each of them that is shipped', async () => {
    for (const name of MIGRATIONS) {
      expect([name, await readFile(new URL(name, SHIPPED), 'utf8')]).toEqual([
        name,
        expect.stringMatching(/^-- requires: \d+\n/),
      ])
    }
    expect(MIGRATIONS.map((name) => Number(name.slice(0, 4)))).toEqual(MIGRATIONS.map((_, i) => i + 1))
  })

  it('can be given a pool, of which one connection is used and given back', async () => {
    const pool = (await freshDatabase()).pool({ max: 1 })
    await migrate(pool, { schema: SCHEMA, mode: 'apply' })
    await migrate(pool, { schema: SCHEMA, mode: 'verify' })
    expect(pool.idleCount).toBe(pool.totalCount)
  })

  it('say that the database is away, and not what the driver says', async () => {
    const pool = new pg.Pool({ connectionString: 'postgres://nobody@127.0.0.1:1/nothing' })
    await expect(migrate(pool, { schema: SCHEMA, mode: 'verify' })).rejects.toMatchObject({
      code: 'store_unavailable',
      cause: expect.objectContaining({ code: 'ECONNREFUSED' }),
    })
    await pool.end()
  })

  it('may be applied again and again', async () => {
    const client = await connect((await freshDatabase()).url)
    for (let i = 0; i < 3; i += 1) await migrate(client, { schema: SCHEMA, mode: 'apply' })
    const { rows } = await client.query(`SELECT name FROM ${SCHEMA}.migrations ORDER BY version`)
    expect(rows).toEqual(MIGRATIONS.map((name) => ({ name })))
  })

  it('leave nothing behind when one of them fails', async () => {
    const client = await connect((await freshDatabase()).url)
    const folder = await newerFolder('-- requires: 1\nCREATE TABLE half (n int);\nSELECT 1 / 0;\n')
    await expect(migrate(client, { schema: SCHEMA, mode: 'apply', folder })).rejects.toMatchObject({
      code: '22012',
    })
    const { rows } = await client.query('SELECT to_regnamespace($1) AS found', [SCHEMA])
    expect(rows).toEqual([{ found: null }])
  })

  it('refuse to start on a schema that a newer version broke', async () => {
    const database = await freshDatabase()
    const client = await connect(database.url)
    const folder = await newerFolder(
      `-- requires: ${NEXT}\nALTER TABLE records RENAME COLUMN owner TO holder;\n`,
    )
    await migrate(client, { schema: SCHEMA, mode: 'apply', folder })
    const pool = database.pool()
    for (const mode of ['apply', 'verify'] as const) {
      const once = onlyonce({
        store: postgres({ pool, pooler: POOLER, schema: SCHEMA, migrate: mode }),
        secret,
      })
      await expect(once.start()).rejects.toMatchObject({
        code: 'schema_too_new',
        message: expect.stringContaining(NEWER),
      })
      const call = once.transaction(
        { account: 'a', operation: 'o', key: 'key-of-an-old-process' },
        async () => 1,
      )
      await expect(call).rejects.toMatchObject({ code: 'schema_too_new' })
    }
  })

  it('go on with a schema that a newer version only added to', async () => {
    const client = await connect((await freshDatabase()).url)
    const folder = await newerFolder('-- requires: 1\nALTER TABLE records ADD COLUMN region text;\n')
    await migrate(client, { schema: SCHEMA, mode: 'apply', folder })
    await migrate(client, { schema: SCHEMA, mode: 'apply' })
    await migrate(client, { schema: SCHEMA, mode: 'verify' })
  })

  it('notice that an applied migration is not the shipped one', async () => {
    const client = await connect((await freshDatabase()).url)
    await migrate(client, { schema: SCHEMA, mode: 'apply' })
    await client.query(`UPDATE ${SCHEMA}.migrations SET checksum = 'another'`)
    await expect(migrate(client, { schema: SCHEMA, mode: 'verify' })).rejects.toMatchObject({
      code: 'schema_changed',
    })
  })

  it('tell a verifying process what is missing', async () => {
    const client = await connect((await freshDatabase()).url)
    const verify = (folder: URL) => migrate(client, { schema: SCHEMA, mode: 'verify', folder })
    await expect(verify(SHIPPED)).rejects.toMatchObject({ code: 'schema_missing' })
    await migrate(client, { schema: SCHEMA, mode: 'apply' })
    await verify(SHIPPED)
    await expect(verify(await newerFolder(`-- requires: ${NEXT}\nSELECT 1;\n`))).rejects.toMatchObject({
      code: 'schema_outdated',
      message: expect.stringContaining(NEWER),
    })
  })

  it('let a role without DDL rights work on a schema that another role installed', async () => {
    const database = await freshDatabase()
    const client = await connect(database.url)
    await migrate(client, { schema: SCHEMA, mode: 'apply' })
    const role = `clerk_${database.name.slice(-12)}`
    await client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'clerk'`)
    cleanUpLater(async () => {
      const admin = await connect(database.url)
      await admin.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
    })
    await client.query(`GRANT USAGE ON SCHEMA ${SCHEMA} TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${SCHEMA} TO ${role}`)
    const url = new URL(database.url)
    url.username = role
    url.password = 'clerk'
    const pool = database.pool({ connectionString: url.href })
    const once = onlyonce({
      store: postgres({ pool, pooler: POOLER, schema: SCHEMA, migrate: 'verify' }),
      secret,
    })
    const call = { account: 'a', operation: 'o', key: 'key-of-a-clerk' }
    expect(await once.transaction(call, async () => 1)).toEqual({ outcome: 'executed', value: 1 })
    expect(await once.transaction(call, async () => 1)).toEqual({ outcome: 'replayed', value: 1 })
    const rotated = onlyonce({
      store: postgres({ pool, pooler: POOLER, schema: SCHEMA, migrate: 'verify' }),
      secret: { current: 'next', keys: { next: secret } },
    })
    await expect(rotated.start()).rejects.toMatchObject({ code: 'key_ring_incomplete' })
    await client.query(`DELETE FROM ${SCHEMA}.records`)
    await rotated.start()
    expect((await client.query(`SELECT key_id FROM ${SCHEMA}.key_ids`)).rows).toEqual([{ key_id: 'next' }])
    const denied = onlyonce({ store: postgres({ pool, pooler: POOLER, schema: 'another_schema' }), secret })
    await expect(denied.start()).rejects.toMatchObject({
      code: 'store_misconfigured',
      cause: expect.objectContaining({ code: '42501' }),
    })
  })

  it('list the keys that older records name', async () => {
    const database = await freshDatabase()
    const client = await connect(database.url)
    const first = await mkdtemp(join(tmpdir(), 'onlyonce-migrations-'))
    cleanUpLater(() => rm(first, { recursive: true }))
    await writeFile(join(first, MIGRATIONS[0]!), await readFile(new URL(MIGRATIONS[0]!, SHIPPED)))
    await migrate(client, { schema: SCHEMA, mode: 'apply', folder: pathToFileURL(`${first}/`) })
    await client.query(
      `INSERT INTO ${SCHEMA}.records
         (account, operation, key, state, fence, attempt_id, owner, attempted_at, fingerprint,
          fingerprint_key_id, created_at, changed_at, lease_until, expires_at)
       SELECT 'a', 'o', key_id, state, 1, gen_random_uuid(), 'owner', now(), '', key_id, now(), now(),
         CASE state WHEN 'in_progress' THEN now() END, CASE state WHEN 'expired' THEN now() END
       FROM (VALUES ('live', 'in_progress'), ('gone', 'expired')) AS r (key_id, state)`,
    )
    await migrate(client, { schema: SCHEMA, mode: 'apply' })
    const { rows } = await client.query(`SELECT purpose, key_id FROM ${SCHEMA}.key_ids`)
    expect(rows).toEqual([{ purpose: 'fingerprint', key_id: 'live' }])
    const once = onlyonce({ store: postgres({ pool: database.pool(), schema: SCHEMA }), secret })
    await expect(once.start()).rejects.toMatchObject({ code: 'key_ring_incomplete' })
  })

  it.each([
    [{ schema: SCHEMA, mode: 'Verify' }, /mode must be one of apply, verify/],
    [{ schema: SCHEMA }, /mode must be one of apply, verify/],
    [{ mode: 'apply' }, /schema must be a plain .*got none/],
  ])('change nothing where the options are wrong: %j', async (options, why) => {
    const client = await connect((await freshDatabase()).url)
    await expect(migrate(client, options as MigrateOptions)).rejects.toThrow(why)
    const { rows } = await client.query(
      `SELECT 1 FROM pg_tables WHERE schemaname IN ('${SCHEMA}', 'undefined')`,
    )
    expect(rows).toEqual([])
  })

  it('are found in a folder that is written without a slash at its end', async () => {
    const client = await connect((await freshDatabase()).url)
    const { href } = await newerFolder('-- requires: 1\nCREATE TABLE added (n int);\n')
    await migrate(client, { schema: SCHEMA, mode: 'apply', folder: new URL(href.slice(0, -1)) })
    await client.query(`SELECT n FROM ${SCHEMA}.added`)
  })

  it('refuse a schema name that is not a plain identifier', () => {
    const pool = new pg.Pool()
    for (const schema of ['', 'Upper', 'a-b', 'a"; DROP TABLE x; --', 'x'.repeat(64), 'a.b']) {
      expect(() => postgres({ pool, schema })).toThrow(expect.objectContaining({ code: 'option_invalid' }))
    }
  })
})
