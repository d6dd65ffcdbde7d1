import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { readConfig } from '../config.ts'
import { keptSecret } from '../kept-secret.ts'
import type { Service } from '../service.ts'
import { welcome } from '../welcome.ts'

const SECRET = 'a-secret-that-is-long-enough-0123456789'
const PRODUCTION = {
  DATABASE_URL: 'postgres://a:hidden-password@127.0.0.1/b',
  ONLYONCE_SECRET: SECRET,
  STRIPE_SECRET_KEY: 'sk_live_abcdef',
  STRIPE_WEBHOOK_SECRET: 'whsec_abcdefghijklmnopqrstuvwxyz012345',
}

const ringOf = (keys: Record<string, string>) => JSON.stringify({ current: 'a', keys })

function messageOf(read: () => unknown): string {
  try {
    read()
  } catch (error) {
    return (error as Error).message
  }
  return 'nothing is wrong'
}

/** Every variable that the configuration asks for, by its source. */
async function variables(): Promise<string[]> {
  const files = ['../config.ts', '../key-settings.ts'].map((name) =>
    readFile(new URL(name, import.meta.url), 'utf8'),
  )
  const source = (await Promise.all(files)).join('\n')
  return [...source.matchAll(/\bread\.\w+\(\s*'([A-Z_]+)'/g)].map(([, name]) => name!)
}

describe('the configuration', () => {
  it('of development needs nothing, and listens on this machine alone', () => {
    expect(readConfig({})).toMatchObject({
      role: 'all',
      database: { kind: 'embedded' },
      secret: null,
      stripe: null,
      host: '127.0.0.1',
      port: 3_000,
      demo: true,
      webhooksAllowPrivate: false,
    })
  })

  it('of production has no demo, no token and no secret that was not given', () => {
    expect(readConfig(PRODUCTION, ['--role', 'api'])).toMatchObject({
      role: 'api',
      database: { kind: 'url', pooler: 'none' },
      secret: SECRET,
      stripe: { mode: 'live', secretKey: 'sk_live_abcdef' },
      webhookSecrets: ['whsec_abcdefghijklmnopqrstuvwxyz012345'],
      opsToken: null,
      demo: false,
      logLevel: 'info',
    })
  })

  const LIVE = 'sk_live_abcdef'
  it.each<[string, Record<string, string>]>([
    ['NODE_ENV is production', { NODE_ENV: 'production' }],
    ['NODE_ENV is production', { NODE_ENV: 'Production ' }],
    ['NODE_ENV is production', { NODE_ENV: 'prod' }],
    ['HOST is not this machine alone', { HOST: '0.0.0.0' }],
    ['HOST is not this machine alone', { HOST: '::' }],
    ['HOST is not this machine alone', { HOST: 'payments.example' }],
    ['HOST is not this machine alone', { HOST: '127.0.0.1.example' }],
    ['STRIPE_SECRET_KEY is a live key', { STRIPE_SECRET_KEY: LIVE }],
  ])('of anything but development refuses what is made for it: %s', (why, env) => {
    const development = { DEMO_ACCOUNT: '1', WEBHOOKS_ALLOW_PRIVATE: '1', ...env }
    const told = messageOf(() => readConfig(development))
    expect(told).toContain(why)
    expect(told).toMatch(/DATABASE_URL is needed/)
    expect(told).toMatch(/ONLYONCE_SECRET is needed/)
    expect(told).toMatch(/DEMO_ACCOUNT cannot be used/)
    expect(told).toMatch(/WEBHOOKS_ALLOW_PRIVATE cannot be used/)
    if (env.STRIPE_SECRET_KEY === undefined) expect(told).toMatch(/STRIPE_SECRET_KEY is needed/)
    const sandbox = { ...PRODUCTION, STRIPE_SECRET_KEY: undefined, GATEWAY_URL: 'http://127.0.0.1:1', ...env }
    expect(messageOf(() => readConfig(sandbox))).toMatch(/GATEWAY_URL/)
    expect(readConfig({ ...PRODUCTION, ...env }).production).not.toBeNull()
    expect(readConfig({ ...PRODUCTION, ...env })).toMatchObject({ demo: false, docs: false })
    expect(readConfig({ ...PRODUCTION, ...env, DOCS: '1' }).docs).toBe(true)
  })

  it.each(['127.0.0.1', '127.8.9.1', 'localhost', '::1'])('may be that of development on %s', (HOST) => {
    expect(readConfig({ HOST })).toMatchObject({ production: null, demo: true })
  })

  it('refuses every variable that is set and empty, and names it', async () => {
    const names = await variables()
    expect(names.length).toBeGreaterThan(25)
    for (const name of [...names, 'NODE_ENV']) {
      for (const empty of ['', ' ']) {
        expect(
          messageOf(() => readConfig({ ...PRODUCTION, [name]: empty })),
          name,
        ).toContain(`${name} is set, and empty`)
      }
    }
  })

  it.each<[string, string, Record<string, string>]>([
    ['ENCRYPTION_KEY', 'ONLYONCE_SECRET', { ENCRYPTION_KEY: SECRET }],
    ['OPS_TOKEN', 'ONLYONCE_SECRET', { OPS_TOKEN: SECRET }],
    ['ENCRYPTION_KEY', 'ONLYONCE_SECRET', { ENCRYPTION_KEY: ringOf({ a: `${SECRET}a`, b: SECRET }) }],
    ['STRIPE_WEBHOOK_SECRET', 'OPS_TOKEN', { OPS_TOKEN: PRODUCTION.STRIPE_WEBHOOK_SECRET }],
    ['DATABASE_URL', 'ONLYONCE_SECRET', { DATABASE_URL: `postgres://a:${SECRET}@127.0.0.1/b` }],
    ['DATABASE_URL', 'ONLYONCE_SECRET', { DATABASE_URL: `postgres://a:%61${SECRET.slice(1)}@127.0.0.1/b` }],
    ['DATABASE_URL', 'ONLYONCE_SECRET', { DATABASE_URL: `postgres://a@127.0.0.1/b?password=${SECRET}` }],
  ])('refuses one value for two secrets: %s and %s', (name, other, env) => {
    const told = messageOf(() => readConfig({ ...PRODUCTION, ...env }))
    expect(told).toContain(`${name} is the same secret as ${other}`)
    expect(told).not.toContain(SECRET)
  })

  it.each(['postgres://a:100%@127.0.0.1/b', 'postgres://a:%ff@127.0.0.1/b', 'postgres://a@127.0.0.1/%zz'])(
    'tells of an address of the database that no driver can read: %s',
    (DATABASE_URL) => {
      const told = messageOf(() => readConfig({ ...PRODUCTION, DATABASE_URL }))
      expect(told).toContain('DATABASE_URL has a percent sign that begins no character')
      expect(told).not.toContain(DATABASE_URL)
    },
  )

  it('refuses a ring that has one secret twice', () => {
    const env = { ...PRODUCTION, ENCRYPTION_KEY: ringOf({ a: `${SECRET}a`, b: `${SECRET}a` }) }
    expect(messageOf(() => readConfig(env))).toContain('ENCRYPTION_KEY holds the same secret twice')
  })

  it('takes how long to wait for the database, in seconds', () => {
    expect(readConfig({}, ['--wait', '0']).waitMaxMs).toBe(0)
    expect(readConfig({}, ['--wait', '30']).waitMaxMs).toBe(30_000)
    expect(readConfig({}).waitMaxMs).toBe(Number.POSITIVE_INFINITY)
  })

  it('takes a ring of secrets', () => {
    const ring = { current: 'b', keys: { a: SECRET, b: `${SECRET}b` } }
    expect(readConfig({ ...PRODUCTION, ONLYONCE_SECRET: JSON.stringify(ring) }).secret).toEqual(ring)
  })

  it.each<[string, Record<string, string>, string[]?]>([
    ['ONLYONCE_SECRET', { ...PRODUCTION, ONLYONCE_SECRET: '' }],
    ['ONLYONCE_SECRET', { ...PRODUCTION, ONLYONCE_SECRET: 'short' }],
    ['ONLYONCE_SECRET', { ...PRODUCTION, ONLYONCE_SECRET: '{"current":"c","keys":{}}' }],
    ['ENCRYPTION_KEY', { ENCRYPTION_KEY: 'short' }],
    ['DATABASE_URL', { ...PRODUCTION, DATABASE_URL: 'mysql://a:hidden-password@b/c' }],
    ['DATABASE_POOL_SIZE', { ...PRODUCTION, DATABASE_POOL_SIZE: '1' }],
    ['DATABASE_POOLER', { ...PRODUCTION, DATABASE_POOLER: 'session' }],
    ['STRIPE_SECRET_KEY', { STRIPE_SECRET_KEY: 'pk_live_hidden-password' }],
    ['STRIPE_SECRET_KEY', { ...PRODUCTION, STRIPE_SECRET_KEY: '' }, ['--role', 'worker']],
    ['STRIPE_WEBHOOK_SECRET', { STRIPE_WEBHOOK_SECRET: 'hidden-password' }],
    ['GATEWAY_URL', { ...PRODUCTION, GATEWAY_URL: 'http://127.0.0.1:1' }],
    ['GATEWAY_URL', { GATEWAY_URL: 'http://sandbox.example' }],
    ['PORT', { PORT: '70000' }],
    ['PORT', { PORT: '3000x' }],
    ['OPS_TOKEN', { OPS_TOKEN: 'hidden-password' }],
    ['WEBHOOKS_ALLOW_PRIVATE', { WEBHOOKS_ALLOW_PRIVATE: 'yes' }],
    ['LOG_LEVEL', { LOG_LEVEL: 'loud' }],
    ['KEYS_ISSUED', { KEYS_ISSUED: 'always' }],
    ['RETENTION_HOURS', { RETENTION_HOURS: '0' }],
    ['DEADLINE_HEADER', { DEADLINE_HEADER: 'authorization' }],
    ['CALLS_DEADLINE_SECONDS', { CALLS_DEADLINE_SECONDS: 'soon' }],
    ['--role', {}, ['--role', 'boss']],
    ['--wait', {}, ['--wait', 'a while']],
    ['--wait', {}, ['--wait', '-1']],
    ['--nonsense', {}, ['--nonsense']],
  ])('names what is wrong, and never its value: %s', (name, env, args) => {
    const read = () => readConfig(env, args)
    expect(read).toThrow(name)
    expect(read).not.toThrow('hidden-password')
  })

  it('tells everything that is wrong at once', () => {
    expect(() => readConfig({ PORT: 'a', LOG_LEVEL: 'b' })).toThrow(/PORT[\s\S]*LOG_LEVEL/)
  })
})

it('a secret of development is the same for all who start at once, and for nobody else to read', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'payments-secret-'))
  cleanUpLater(() => rm(folder, { recursive: true }))
  const secrets = await Promise.all(Array.from({ length: 10 }, () => keptSecret(folder, 'a')))
  expect(new Set(secrets).size).toBe(1)
  expect(secrets[0]!.length).toBeGreaterThanOrEqual(32)
  expect((await stat(join(folder, 'a'))).mode & 0o077).toBe(0)
})

it('the README has every variable, and no other', async () => {
  const read = (name: string) => readFile(new URL(`../${name}`, import.meta.url), 'utf8')
  const asked = await variables()
  const rows = (await read('README.md')).split('\n').filter((line) => /^\| `[A-Z_]+`/.test(line))
  const told = rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name))
  expect([...new Set(told)].sort()).toEqual([...new Set(asked)].sort())
})

it('what a start prints holds no key and no token outside of development', () => {
  const service = (env: Record<string, string>) =>
    ({ config: readConfig(env), opsToken: 'the-token-of-the-operators' }) as Service
  const printed = welcome(service({ ...PRODUCTION, NODE_ENV: 'production' }), 'http://127.0.0.1:1')
  expect(printed).toBe('Ready: http://127.0.0.1:1')
  expect(welcome(service({}), 'http://127.0.0.1:1')).toContain('the-token-of-the-operators')
})
