import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { type Ran, type RunOptions, run } from './under-test.ts'

export type Role = 'migrator' | 'app' | 'support' | 'reader'

export interface World {
  readonly admin: pg.Pool
  readonly as: (role: Role, args: readonly string[], options?: RunOptions) => Promise<Ran>
  readonly urlOf: (role: Role) => string
  readonly roleOf: (role: Role) => string
  close(): Promise<void>
}

/** A database without tables of the library, and four roles. */
export async function openWorld(serverUrl: string): Promise<World> {
  const mark = randomBytes(4).toString('hex')
  const [database, password] = [`onlyonce_cli_${mark}`, randomBytes(12).toString('hex')]
  const server = openPool(serverUrl, 1)
  await server.query(`CREATE DATABASE ${database}`)
  const roleOf = (role: Role) => `${role}_${mark}`
  const url = new URL(serverUrl)
  url.pathname = `/${database}`
  const admin = openPool(url.href, 2)
  for (const role of ['migrator', 'app', 'support', 'reader'] as const) {
    await server.query(`CREATE ROLE ${roleOf(role)} LOGIN PASSWORD '${password}'`)
  }
  await server.query(`GRANT CREATE ON DATABASE ${database} TO ${roleOf('migrator')}`)
  const urlOf = (role: Role) => Object.assign(new URL(url.href), { username: roleOf(role), password }).href
  return {
    admin,
    urlOf,
    roleOf,
    as: (role, args, options = {}) =>
      run(args, { ...options, env: { ONLYONCE_DATABASE_URL: urlOf(role), ...options.env } }),
    async close() {
      await admin.end()
      await server.query(`DROP DATABASE ${database} WITH (FORCE)`)
      for (const role of ['migrator', 'app', 'support', 'reader'] as const)
        await server.query(`DROP ROLE ${roleOf(role)}`)
      await server.end()
    },
  }
}

/** The server may end before all of its connections have. */
export function openPool(connectionString: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString, max })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}
