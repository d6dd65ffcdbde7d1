import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { logTo } from '../../src/entries/observe.ts'
import { Boundary } from '../../src/http/index.ts'
import { onlyonce } from '../../src/index.ts'
import { migrate, postgres } from '../../src/store/postgres/index.ts'
import { startTrouble } from '../../src/store/postgres/trouble.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { catchError, makeCall, openShop, SECRET, type Shop } from './shop.ts'

let shop: Shop
let address: URL
const PASSWORD = 'a-password-that-nobody-may-see'

beforeAll(async () => {
  shop = await openShop()
  address = new URL(shop.database.url)
})

function changed(change: (url: URL) => void): string {
  const url = new URL(address)
  change(url)
  return url.href
}

function openAt(connectionString: string, observe?: Parameters<typeof onlyonce>[0]['observe']) {
  const store = postgres({ connectionString, connectionWaitMaxMs: 2_000 })
  const once = onlyonce({ store, secret: SECRET, ...(observe !== undefined && { observe }) })
  cleanUpLater(() => once.close({ maxMs: 100 }))
  return once
}

/** A role that may log in and do nothing else. */
async function powerless(): Promise<string> {
  await shop.observer.query(`DROP ROLE IF EXISTS powerless`)
  await shop.observer.query(`CREATE ROLE powerless LOGIN PASSWORD '${PASSWORD}'`)
  cleanUpLater(async () => void (await shop.observer.query('DROP ROLE IF EXISTS powerless')))
  return changed((url) => {
    url.username = 'powerless'
    url.password = PASSWORD
  })
}

const CASES: Readonly<Record<string, [make: () => string | Promise<string>, code: string, detail: RegExp]>> =
  {
    'a wrong password': [
      () => changed((url) => (url.password = PASSWORD)),
      'store_misconfigured',
      /refuses this user or its password.*\(28P01\)/,
    ],
    'a user that there is not': [
      () =>
        changed((url) => {
          url.username = 'nobody_at_all'
          url.password = PASSWORD
        }),
      'store_misconfigured',
      /refuses this user or its password/,
    ],
    'a database that there is not': [
      () => changed((url) => (url.pathname = '/nothing_here')),
      'store_misconfigured',
      /no such database.*\(3D000\)/,
    ],
    'missing rights': [powerless, 'store_misconfigured', /lacks a right.*\(42501\)/],
    'a port where nothing listens': [
      () => changed((url) => (url.port = '1')),
      'store_unavailable',
      /Nothing listens.*\(ECONNREFUSED\)/,
    ],
    'a host that there is not': [
      () => changed((url) => (url.hostname = 'no-such-host.invalid')),
      'store_unavailable',
      /cannot be resolved/,
    ],
    'a server that speaks no TLS': [
      () => changed((url) => url.searchParams.set('sslmode', 'require')),
      'store_misconfigured',
      /The database speaks no TLS/,
    ],
  }

describe.each(Object.entries(CASES))('%s', (_, [make, code, detail]) => {
  test('is told by a code and a sentence of its own, without a secret, in the log and to the caller', async () => {
    const lines: string[] = []
    const log = (fields: object, message: string) => void lines.push(JSON.stringify({ ...fields, message }))
    const once = openAt(await make(), logTo({ info: log, warn: log, error: log }))
    const error = await catchError(once.transaction(makeCall(), async () => 1))
    expect(error).toMatchObject({ code, retryable: true })
    expect(error.message).toMatch(detail)
    expect(error.cause).toBeInstanceOf(Error)
    expect(lines.join('\n')).toMatch(detail)
    expect(`${error.message} ${lines.join('\n')}`).not.toContain(PASSWORD)
    expect(`${error.message} ${lines.join('\n')}`).not.toContain(address.password || PASSWORD)
  })
})

describe.each(Object.entries(CASES))('migrate() on a pool: %s', (_, [make, code, detail]) => {
  test('is told in the same way', async () => {
    const pool = shop.database.pool({
      connectionString: await make(),
      connectionTimeoutMillis: 2_000,
      max: 1,
    })
    const error = await catchError(migrate(pool, { schema: 'of_their_own', mode: 'apply' }))
    expect(error).toMatchObject({ code, retryable: true })
    expect(error.message).toMatch(detail)
    expect(error.cause).toBeInstanceOf(Error)
    expect(error.message).not.toContain(PASSWORD)
  })
})

test('where nobody observes, the reason is a warning of the process, once', async () => {
  const warnings: string[] = []
  const note = (warning: Error) => {
    if (warning.name === 'OnlyonceStoreWarning') warnings.push(warning.message)
  }
  process.on('warning', note)
  cleanUpLater(async () => void process.off('warning', note))
  const once = openAt(changed((url) => (url.pathname = '/nothing_here')))
  for (const _ of [1, 2, 3]) await catchError(once.start())
  await new Promise((resolve) => setImmediate(resolve))
  expect(warnings).toHaveLength(1)
  expect(warnings[0]).toMatch(/^The store cannot be used\. store_misconfigured: .*no such database/)
})

test('an address that is none is refused at once, and not repeated', () => {
  const wrong = `postgres://user:${PASSWORD}@host:port:5/x`
  const make = () => postgres({ connectionString: wrong })
  expect(make).toThrow(/connectionString is no address of a database/)
  expect(make).not.toThrow(PASSWORD)
})

test.each([
  '',
  'hello world',
  '127.0.0.1',
  'localhost:5432',
  'mysql://user@host/x',
  'http://host',
  undefined,
])('an address of something else is refused at once: %s', (connectionString) => {
  const make = () => postgres({ connectionString: connectionString as string })
  expect(make).toThrow(expect.objectContaining({ code: 'option_invalid' }))
})

test.each([
  'postgres://u@h/d',
  'postgresql://u@h/d',
  'postgresql:///d?host=/tmp',
  '/tmp d',
  'socket:/tmp?db=d',
])('an address of a server is taken: %s', (connectionString) => {
  expect(() => postgres({ connectionString })).not.toThrow()
})

test.each([0, -1, 1.5, Number.NaN, '5'])('a pool of %s connections is refused', (poolSize) => {
  const make = () => postgres({ connectionString: 'postgres://u@h/d', poolSize: poolSize as number })
  expect(make).toThrow(/poolSize must be a whole number from 1/)
})

test('missing files of migrations are told as such', async () => {
  const client = await shop.database.pool({ max: 1 }).connect()
  cleanUpLater(async () => client.release())
  const folder = new URL('./no-migrations-here/', import.meta.url)
  const error = await catchError(migrate(client, { schema: 'onlyonce', mode: 'apply', folder }))
  const told = startTrouble(error)
  expect(told).toMatchObject({
    code: 'store_misconfigured',
    message: expect.stringMatching(/files of the migrations/),
  })
  expect(String(told)).not.toContain(fileURLToPath(folder))
})

test('a missing schema has a code of its own', async () => {
  const store = postgres({ pool: shop.database.pool(), migrate: 'verify', schema: 'never_made' })
  const once = onlyonce({ store, secret: SECRET, observe: { signal() {} } })
  expect(await catchError(once.start())).toMatchObject({ code: 'schema_missing', retryable: true })
})

test('a client over HTTP hears none of it', async () => {
  const once = openAt(
    changed((url) => (url.pathname = '/nothing_here')),
    { signal() {} },
  )
  const boundary = new Boundary(once, { operation: 'orders.create' }, 'POST /orders')
  const answer = await boundary.handle(
    {
      method: 'POST',
      route: '/orders',
      path: '/orders',
      pathParams: {},
      query: '',
      account: 'acct_1',
      header: (name: string) => (name.toLowerCase() === 'idempotency-key' ? 'a-key-that-is-long' : undefined),
      body: () => ({ kind: 'raw', bytes: Buffer.of() }),
    } as never,
    (async () => {
      throw new Error('it must not run')
    }) as never,
  )
  const { reply } = answer as { reply: { status: number; body: Buffer } }
  const problem = JSON.parse(reply.body.toString())
  expect(problem).toMatchObject({ code: 'store_misconfigured', retryable: true, status: 500 })
  expect(problem.detail).not.toMatch(/no such database|3D000/)
})

test('a server that closes at once is no lasting trouble', async () => {
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUpLater(async () => void server.close())
  const { port } = server.address() as { port: number }
  const once = openAt(`postgres://a:${PASSWORD}@127.0.0.1:${port}/x`, { signal() {} })
  expect(await catchError(once.start())).toMatchObject({ code: 'store_unavailable', retryable: true })
})
