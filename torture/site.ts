import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FaultProxy, type Random, startFaultProxy } from 'onlyonce/testing'
import { compile } from './compile.ts'
import { unpackEarlier } from './earlier.ts'
import type { Movement } from './judge/history.ts'
import { type Database, openDatabase } from './postgres.ts'
import { Program } from './process.ts'
import { type ProcessorRule, processorControl } from './processor-control.ts'
import { openSink, type Sink } from './sink.ts'
import { TROUBLES } from './storage-faults.ts'

/** Everything that runs: three servers, two workers, the processor, the database, and a proxy on every link. */
export interface Site {
  readonly database: Database
  readonly sink: Sink
  readonly processor: Program
  readonly servers: readonly Program[]
  readonly workers: readonly Program[]
  /** From clients to each server. */
  readonly front: readonly FaultProxy[]
  /** From each server and worker to the database, and to the processor. */
  readonly toDatabase: readonly FaultProxy[]
  readonly toProcessor: readonly FaultProxy[]
  readonly accounts: readonly SiteAccount[]
  /** Tells the processor to show a fault; the function that it gives heals that. */
  misbehave(rule: ProcessorRule): Promise<() => Promise<void>>
  journal(): Movement[]
  /** Puts the clock of one process forward or back, by libfaketime; it reads the file again every second. */
  setClock(program: Program, offsetS: number): void
  /** From its next start on, a program runs this version. */
  setVersion(program: Program, version: Version): void
  close(): Promise<void>
}

export type Version = 'present' | 'earlier'

export interface SiteAccount {
  readonly account: string
  readonly accountId: string
  readonly apiKey: string
  /** Where its webhooks arrive. */
  readonly path: string
}

export interface SiteOptions {
  readonly random: Random
  readonly postgres: 'embedded' | 'debian'
  readonly settings?: Readonly<Record<string, string>>
  /** Put in front of the database, such as a pooler; is given its address. */
  readonly pooler?: (url: string) => Promise<{ readonly url: string; stop(): Promise<void> }>
  readonly poolSize?: number
  /** Whether programs can be started in the earlier version, too. */
  readonly withEarlier?: boolean
  /** Whether the clocks of servers and workers can be moved, which makes every look at a clock slower. */
  readonly withClocks?: boolean
}

const SETUP_TRIES_MAX = 40
const SERVERS = 3
const WORKERS = 2
const ACCOUNTS = 3
const OPS_TOKEN = 'the-token-of-operators-under-torture'
const CONTROL_TOKEN = 'the-token-of-the-sandbox-under-torture'
const WEBHOOK_SECRET = 'whsec_b25seW9uY2UtdG9ydHVyZS1zZWNyZXQtMDE='
const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1'

/** Short, so that a run sees many leases end. */
const TIMING = {
  LEASE_MS: '3000',
  GRACE_MS: '1000',
  GATEWAY_TIMEOUT_MS: '1500',
  GATEWAY_SETTLE_MS: '3000',
  // Longer than any fault lasts. What cannot be found out, such as a stored 500 of the processor, is parked after it.
  RECONCILE_AFTER_SECONDS: '1,1,2,2,3,3,4,4,5,5,5,5',
}
const UNLIMITED = {
  RATE_LIMIT_TEST: '1000000',
  VELOCITY_CARD: '1000000/60',
  VELOCITY_ACCOUNT: '1000000/60',
}

export async function openSite({
  random,
  postgres,
  settings = {},
  pooler,
  poolSize = 8,
  withEarlier = false,
  withClocks = false,
}: SiteOptions): Promise<Site> {
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-torture-site-'))
  const closers: (() => Promise<void> | void)[] = [() => rmSync(folder, { recursive: true, force: true })]
  const later = <T extends { close(): Promise<void> }>(thing: T): T => {
    closers.push(() => thing.close())
    return thing
  }
  const close = async () => {
    for (const each of closers.reverse()) await Promise.resolve(each()).catch(() => {})
  }
  try {
    const database = later(await openDatabase(postgres, settings))
    const pooled = await pooler?.(database.url)
    if (pooled !== undefined) closers.push(() => pooled.stop())
    const databaseUrl = pooled?.url ?? database.url
    const sink = later(await openSink(random.fork(1)))
    const proxy = async (port: number, stream: number) =>
      later(
        await startFaultProxy({
          target: { host: '127.0.0.1', port },
          seed: random.fork(stream).integer(2 ** 31),
        }),
      )

    const ports = await freePorts(SERVERS + 1)
    const front = await each(SERVERS, (n) => proxy(ports[n]!, 10 + n))
    const processorPort = ports[SERVERS]!
    const toProcessor = await each(SERVERS + WORKERS, (n) => proxy(processorPort, 20 + n))
    const toDatabase = await each(SERVERS + WORKERS, (n) => proxy(Number(new URL(databaseUrl).port), 40 + n))

    const gateway = compile(new URL('../apps/gateway/program.ts', import.meta.url))
    const processor = later(
      new Program({
        name: 'processor',
        args: () => [
          gateway,
          '--with-parent',
          `--folder=${join(folder)}`,
          `--port=${processorPort}`,
          `--webhook-url=${front[0]!.url('/webhooks/stripe')}`,
          `--seed=${random.fork(2).integer(2 ** 31)}`,
        ],
        env: { SANDBOX_CONTROL_TOKEN: CONTROL_TOKEN, SANDBOX_WEBHOOK_SECRET: WEBHOOK_SECRET },
        ready: /./,
      }),
    )
    await processor.start()

    const main = compile(new URL('../apps/payments/main.ts', import.meta.url))
    const earlier = withEarlier ? unpackEarlier() : null
    const versions = new Map<string, Version>()
    const service = (role: 'api' | 'worker', n: number) => {
      const name = `${role}-${n}`
      const link = role === 'api' ? n : SERVERS + n
      writeFileSync(join(folder, `${name}.clock`), '+0\n')
      return later(
        new Program({
          name,
          args: () => [versions.get(name) === 'earlier' ? earlier! : main, '--role', role],
          env: {
            ...TIMING,
            ...UNLIMITED,
            DATABASE_URL: toDatabase[link]!.url(databaseUrl),
            DATABASE_POOL_SIZE: `${poolSize}`,
            ...(pooled !== undefined && { DATABASE_POOLER: 'transaction' }),
            GATEWAY_URL: toProcessor[link]!.url('/').replace(/\/$/, ''),
            STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
            ONLYONCE_SECRET: 'the-secret-of-the-service-under-torture-0123',
            ENCRYPTION_KEY: 'the-encryption-key-of-the-service-under-torture',
            OPS_TOKEN,
            WEBHOOKS_ALLOW_PRIVATE: '1',
            LOG_LEVEL: 'warn',
            ...(role === 'api' && { PORT: `${ports[n]}` }),
            ...(withClocks && {
              LD_PRELOAD: FAKETIME,
              FAKETIME_TIMESTAMP_FILE: join(folder, `${name}.clock`),
              // In seconds. To read the file at every look at the clock took a hundred times as long as the look.
              FAKETIME_CACHE_DURATION: '1',
              FAKETIME_DONT_FAKE_MONOTONIC: '1',
            }),
          },
          ready: /^Ready/m,
        }),
      )
    }
    const servers = await each(SERVERS, (n) => service('api', n))
    const workers = await each(WORKERS, (n) => service('worker', n))
    // The first one migrates.
    await servers[0]!.start()
    if (!servers[0]!.alive) throw new Error(`The service did not start:\n${servers[0]!.lives[0]?.output}`)
    await Promise.all([...servers, ...workers].map((program) => program.start()))
    await database.query(TROUBLES)
    const accounts = await each(ACCOUNTS, (n) => openAccount(`http://127.0.0.1:${ports[0]}`, sink, n))
    return {
      database,
      sink,
      processor,
      servers,
      workers,
      front,
      toDatabase,
      toProcessor,
      accounts,
      misbehave: processorControl({
        url: `http://127.0.0.1:${processorPort}/_sandbox`,
        token: CONTROL_TOKEN,
        processor,
      }),
      journal: () => readJournal(join(folder, 'journal.jsonl')),
      setClock(program, offsetS) {
        const file = join(folder, `${program.name}.clock`)
        // Whole or not at all: a process that reads half of it ends.
        writeFileSync(`${file}.new`, `${offsetS < 0 ? '' : '+'}${offsetS}\n`)
        renameSync(`${file}.new`, file)
      },
      setVersion: (program, version) => versions.set(program.name, version),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function openAccount(url: string, sink: Sink, n: number): Promise<SiteAccount> {
  const ops = { authorization: `Bearer ${OPS_TOKEN}` }
  const { id: accountId } = await post(`${url}/ops/accounts`, ops, { name: `Torture ${n}` })
  const { api_key: apiKey } = await post(`${url}/ops/accounts/${accountId}/api-keys`, ops, { mode: 'test' })
  const path = `/hooks/${n}`
  await post(
    `${url}/v1/webhook-endpoints`,
    { authorization: `Bearer ${apiKey}`, 'idempotency-key': `torture-endpoint-${n}` },
    { url: `${sink.url}${path}` },
  )
  return { account: `${accountId}:test`, accountId: accountId!, apiKey: apiKey!, path }
}

async function post(
  url: string,
  headers: Record<string, string>,
  body: unknown,
): Promise<Record<string, string>> {
  for (let tries = 0; ; tries += 1) {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (response.ok) return (await response.json()) as Record<string, string>
    const said = `${url}: ${response.status} ${await response.text()}`
    // On a busy machine a server may say that it is overloaded before anything has begun.
    if (response.status !== 503 || tries >= SETUP_TRIES_MAX) throw new Error(said)
    await sleep(500)
  }
}

/** The processor may be dead, and its last line torn. */
function readJournal(path: string): Movement[] {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
  return lines
    .map((line) => JSON.parse(line) as Movement | { kind: 'refusal' })
    .filter((line): line is Movement => line.kind !== 'refusal')
}

async function each<T>(count: number, make: (n: number) => T | Promise<T>): Promise<T[]> {
  const made: T[] = []
  for (let n = 0; n < count; n += 1) made.push(await make(n))
  return made
}

/** Ports that stay the same when a process starts again. Below the range that systems give to connections. */
async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = []
  for (let port = 18_000 + (process.pid % 5_000); ports.length < count && port < 32_000; port += 1) {
    if (await isFree(port)) ports.push(port)
  }
  return ports
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
