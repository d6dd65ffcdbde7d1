import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { readConfig } from '../config.ts'
import { keptSecret } from '../kept-secret.ts'

const SECRET = 'a-secret-that-is-long-enough-0123456789'
const PRODUCTION = {
  DATABASE_URL: 'postgres://a:hidden-password@127.0.0.1/b',
  ONLYONCE_SECRET: SECRET,
  STRIPE_SECRET_KEY: 'sk_live_abcdef',
  STRIPE_WEBHOOK_SECRET: 'whsec_abcdefghijklmnopqrstuvwxyz012345',
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
      webhooks_allow_private: false,
    })
  })

  it('of production has no demo, no token and no secret that was not given', () => {
    expect(readConfig(PRODUCTION, ['--role', 'api'])).toMatchObject({
      role: 'api',
      database: { kind: 'url', pooler: 'none' },
      secret: SECRET,
      stripe: { mode: 'live', secret_key: 'sk_live_abcdef' },
      webhook_secrets: ['whsec_abcdefghijklmnopqrstuvwxyz012345'],
      ops_token: null,
      demo: false,
      log_level: 'info',
    })
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
    ['--role', {}, ['--role', 'boss']],
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
  const asked = [...(await read('config.ts')).matchAll(/\bread\.\w+\(\s*'([A-Z_]+)'/g)].map(
    ([, name]) => name,
  )
  const rows = (await read('README.md')).split('\n').filter((line) => /^\| `[A-Z_]+`/.test(line))
  const told = rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`([A-Z_]+)`/g)].map(([, name]) => name))
  expect([...new Set(told)].sort()).toEqual([...new Set(asked)].sort())
})
