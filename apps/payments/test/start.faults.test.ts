import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startFaultProxy } from 'onlyonce/testing'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { type FreshDatabase, freshDatabase } from '../../../test/setup/database.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { openGateways } from '../gateways.ts'
import { openService } from '../service.ts'
import { TEST_SECRET, testConfig } from './service.ts'
import { type SpawnedService, spawnService } from './service-process.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** No processor is asked for anything. */
const env = { GATEWAY_URL: 'http://127.0.0.1:9' }

/** A database behind a proxy that turns everybody away until it is healed. */
async function openAway(): Promise<{ url: string; heal(): void; refused(count: number): Promise<void> }> {
  const database = await freshDatabase()
  const { hostname: host, port } = new URL(database.url)
  const proxy = await startFaultProxy({ target: { host, port: Number(port) } })
  cleanUpLater(() => proxy.close())
  proxy.setFault({ kind: 'refuse' })
  return {
    url: proxy.url(database.url),
    heal: () => proxy.setFault(null),
    refused: (count) =>
      waitUntil(`${count} connections were refused`, () => proxy.stats.connectionsRefused >= count),
  }
}

const linesOf = ({ output }: SpawnedService) => output().trim().split('\n')

describe('twenty services that start at once', () => {
  it('all start, on an empty database whose sessions are serializable', { timeout: 120_000 }, async () => {
    const database: FreshDatabase = await freshDatabase()
    const admin = database.direct({ max: 1 })
    await admin.query('DROP SCHEMA onlyonce CASCADE')
    const name = pg.escapeIdentifier(database.name)
    await admin.query(`ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`)
    // Each with connections of its own, which is all that the database knows of processes.
    const config = { ...testConfig(database, { ...env, DATABASE_POOL_SIZE: '3' }), waitMaxMs: 0 }
    const services = await Promise.all(
      Array.from({ length: 20 }, () => openService(config, { gateways: {} })),
    )
    await Promise.all(services.map((service) => service.close()))
    const { rows } = await admin.query(`SELECT version FROM payments.migrations ORDER BY version`)
    expect(rows.length).toBeGreaterThan(0)
  })
})

describe('npm start', () => {
  it('takes the service with it when it is told to end', async () => {
    const { url } = await openAway()
    const config = { ...env, DATABASE_URL: url, ONLYONCE_SECRET: TEST_SECRET, PORT: '0' }
    const npm = spawn('npm', ['start', '--silent'], {
      cwd: ROOT,
      env: { ...process.env, ...config },
      stdio: ['ignore', 'ignore', 'pipe'],
      // A group of its own, so that whatever outlives npm can be ended with the test.
      detached: true,
    })
    cleanUpLater(async () => {
      try {
        process.kill(-npm.pid!, 'SIGKILL')
      } catch {}
    })
    let said = ''
    npm.stderr.setEncoding('utf8').on('data', (text) => {
      said += text
    })
    await waitUntil('it waits for its database', () => said.includes('Waiting for it'))
    // Open for as long as any process has it that npm started.
    const closed = once(npm.stderr, 'close')
    npm.kill('SIGTERM')
    await closed
  })
})

describe('a service whose PostgreSQL is away when it starts', () => {
  it('says so in one line, waits, and starts when it is there', async () => {
    const database = await openAway()
    const service = spawnService({ database, role: 'api', env })
    await database.refused(3)
    await waitUntil('it has said so', () => service.output() !== '')
    expect(linesOf(service)).toEqual([
      expect.stringMatching(
        /^PostgreSQL at 127\.0\.0\.1:\d+ cannot be reached \(ECONNRESET\)\. Waiting for it; --wait 0 gives up at once\.$/,
      ),
    ])
    database.heal()
    await waitUntil('it is ready', () => service.output().includes('Ready: http'))
    expect(linesOf(service)).toHaveLength(2)
    await service.end('SIGTERM')
    expect(service.child.exitCode, service.output()).toBe(0)
  })

  it('gives up at once with --wait 0, and says why in one line', async () => {
    const service = spawnService({ database: await openAway(), role: 'worker', env, args: ['--wait', '0'] })
    await service.ended()
    expect(service.child.exitCode).toBe(1)
    expect(linesOf(service)).toEqual([
      expect.stringMatching(
        /^PostgreSQL at 127\.0\.0\.1:\d+ cannot be reached \(ECONNRESET\)\. The start gave up at once\.$/,
      ),
    ])
  })

  it('ends when it is told to while it waits', async () => {
    const database = await openAway()
    const service = spawnService({ database, role: 'api', env })
    await waitUntil('it waits', () => service.output().includes('Waiting for it'))
    await service.end('SIGTERM')
    expect([service.child.exitCode, service.child.signalCode], service.output()).toEqual([0, null])
  })

  it('waits for nothing where the server has refused it', async () => {
    const { url } = await freshDatabase()
    const lost = new URL(url)
    lost.pathname = '/no_such_database'
    const locked = new URL(url)
    locked.password = 'not the password'
    for (const { href, code } of [
      { href: lost.href, code: '3D000' },
      { href: locked.href, code: '28P01' },
    ]) {
      const service = spawnService({ database: { url: href }, role: 'worker', env })
      await service.ended()
      expect(service.child.exitCode).toBe(1)
      expect(linesOf(service)).toEqual([expect.stringMatching(new RegExp(`${code}.*store_misconfigured`))])
    }
  })
})

describe('two services in one folder', () => {
  it('share one sandbox processor, which the second one leaves as it is', { timeout: 60_000 }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'onlyonce-shared-'))
    cleanUpLater(() => rm(folder, { recursive: true, force: true }))
    const config = { ...testConfig(await freshDatabase()), folder, port: 0, gatewayUrl: null }
    const opened = await Promise.all([openGateways(config), openGateways(config)])
    for (const { close } of opened) cleanUpLater(close)
    const read = async (name: string) => await readFile(join(folder, 'gateway', name), 'utf8')
    const before = [await read('address'), await read('control-token')]
    const late = await openGateways(config)
    await late.close()
    expect([await read('address'), await read('control-token')]).toEqual(before)
    // What one was told, the others know.
    const [first, second] = opened.map(({ gateways }) => gateways.test!)
    const order = { account: 'acct_1:test', payment: 'pay_1', amount: 100, currency: 'EUR', reference: null }
    const card = { payment_method: 'pm_card_visa', capture: 'automatic' } as const
    const context = { key: 'shared-sandbox-1', signal: AbortSignal.timeout(10_000) }
    const { gateway_id: gatewayId } = await first!.authorize({ ...order, ...card }, context)
    expect(await second!.lookUp('payment', gatewayId!, context.signal)).toMatchObject({ taken: 100 })
  })
})

describe('a service whose folder cannot be made', () => {
  // Node tries for ever to make a folder below /proc with `recursive`. A start that does so ends by no signal but the second one.
  it.each([
    { what: 'its own database', away: { ...env, DATABASE_URL: undefined, ONLYONCE_SECRET: undefined } },
    { what: 'its own sandbox processor', away: {} },
  ])('says so in one line and ends, where $what would be kept there', async ({ away }) => {
    const database = await freshDatabase()
    for (const folder of ['/proc/x', '/proc/x/below', '/etc/hostname/below']) {
      const service = spawnService({ database, env: { ...away, DATA_FOLDER: folder } })
      await service.ended()
      expect(service.child.exitCode, service.output()).toBe(1)
      expect(linesOf(service)).toEqual([
        expect.stringMatching(
          /^DATA_FOLDER cannot be used: [^\n]*Set it to a folder that this user may write\.$/,
        ),
      ])
    }
  })
})
