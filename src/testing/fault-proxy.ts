import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { OnlyonceError } from '../core/errors.ts'
import { refuseUnknown } from '../core/options.ts'
import { ActiveFault, type Fault } from './faults.ts'
import { TESTING_LIMITS } from './limits.ts'
import { Link } from './link.ts'
import { type ConnectionState, type ProxyEvent, ProxyFacts, type ProxyStats } from './proxy-facts.ts'
import { type Random, random } from './random.ts'
import { resetSocket } from './socket.ts'
import type { WaitOptions } from './waiters.ts'

/** What a fault proxy stands in front of. */
export interface FaultProxyOptions {
  readonly target: { readonly host: string; readonly port: number }
  /**
   * Decides every choice of the proxy. Without it one is drawn; `proxy.seed` tells which, to reproduce a run.
   *
   * @default a random one
   */
  readonly seed?: number
}

/** A connection that a fault proxy carries at present. */
export interface ProxyConnection {
  /** Its number, counted from 1. */
  readonly id: number
  readonly state: ConnectionState
  readonly commitsSeen: number
  readonly bytesToServer: number
  readonly bytesToClient: number
}

/** A TCP proxy on loopback that harms the connections that it carries. */
export interface FaultProxy {
  readonly host: string
  readonly port: number
  readonly seed: number
  /** The connections that are open, oldest first. */
  readonly connections: readonly ProxyConnection[]
  /** What was counted so far: a copy, which does not change any more. */
  readonly stats: ProxyStats
  /**
   * The same address by way of the proxy: of a URL such as a PostgreSQL connection string, or, for a path, of
   * HTTP.
   */
  url(pathOrUrl?: string): string
  /**
   * Sets the fault for new and open connections, in place of the one before; null heals what can be healed.
   */
  setFault(fault: Fault | null): void
  /** The next event of this kind. Ask before you do what causes it. */
  once<K extends ProxyEvent['kind']>(
    kind: K,
    options?: WaitOptions,
  ): Promise<Extract<ProxyEvent, { kind: K }>>
  /** Resolves as soon as the counters satisfy the predicate, at once if they do already. */
  waitFor(predicate: (stats: ProxyStats) => boolean, options?: WaitOptions): Promise<ProxyStats>
  /** Destroys every connection; resolves when the port is free. */
  close(): Promise<void>
}

/**
 * Starts a fault proxy on 127.0.0.1, on a port of the system's choice. It stands in front of PostgreSQL,
 * where it can cut a connection exactly at a COMMIT, or of any other server that speaks TCP.
 *
 * Every choice follows from the seed, the number of the connection and the choices made on that connection
 * before.
 *
 * @example
 * const proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: 5432 }, seed: 42 })
 * const pool = new pg.Pool({ connectionString: proxy.url('postgres://app@127.0.0.1:5432/app') })
 * proxy.setFault({ kind: 'cut_at_commit', when: 'after', times: 1 })
 * const cut = proxy.once('commit_cut')
 * await once.transaction(call, work)
 * await cut
 * await proxy.close()
 */
export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  refuseUnknown('startFaultProxy()', options, { target: true, seed: true })
  checkTarget(options.target)
  const source = random(options.seed ?? Math.floor(Math.random() * 2 ** 32))
  const facts = new ProxyFacts()
  const links = new Set<Link>()
  let active: ActiveFault | null = null

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const id = facts.accept()
    const chooser = source.fork(id)
    if (isRefused(active, chooser)) return refuse(client, id, facts)
    const link = new Link(client, {
      id,
      target: options.target,
      random: chooser,
      facts,
      active: () => active,
    })
    links.add(link)
    link.closed.then(() => {
      links.delete(link)
      facts.note({ kind: 'closed', connection: id })
    })
  })
  server.maxConnections = TESTING_LIMITS.connectionsMax
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  let closing: Promise<void> | null = null

  async function close(): Promise<void> {
    const closed = once(server, 'close')
    server.close()
    for (const link of links) link.destroy()
    await Promise.all([closed, ...[...links].map((link) => link.closed)])
    facts.close()
  }

  return {
    host: '127.0.0.1',
    port,
    seed: source.seed,
    get connections() {
      return [...links].map(describe)
    },
    get stats() {
      return facts.stats
    },
    url: (pathOrUrl = '/') => redirect(pathOrUrl, port),
    setFault(fault) {
      active = fault === null ? null : new ActiveFault(fault)
      for (const link of links) link.arm(active)
    },
    once: (kind, waitOptions) => facts.once(kind, waitOptions),
    waitFor: (predicate, waitOptions) => facts.waitFor(predicate, waitOptions),
    close() {
      closing ??= close()
      return closing
    },
  }
}

function checkTarget(target: FaultProxyOptions['target']): void {
  const { host, port } = target
  if (typeof host === 'string' && host !== '' && Number.isInteger(port) && port > 0 && port < 65_536) return
  throw new OnlyonceError('option_invalid', { detail: 'A fault proxy needs target: { host, port }.' })
}

function isRefused(active: ActiveFault | null, chooser: Random): boolean {
  return active?.fault.kind === 'refuse' && active.draw(chooser) && active.take()
}

function refuse(client: Socket, id: number, facts: ProxyFacts): void {
  client.on('error', () => {})
  client.once('close', () => facts.note({ kind: 'closed', connection: id }))
  resetSocket(client)
  facts.note({ kind: 'refused', connection: id })
}

function describe(link: Link): ProxyConnection {
  const { id, state, commitsSeen, bytesToServer, bytesToClient } = link
  return { id, state, commitsSeen, bytesToServer, bytesToClient }
}

function redirect(pathOrUrl: string, port: number): string {
  const url = pathOrUrl.startsWith('/') ? new URL(pathOrUrl, 'http://127.0.0.1') : new URL(pathOrUrl)
  url.hostname = '127.0.0.1'
  url.port = String(port)
  // pg takes these over the host and port in front.
  for (const name of ['host', 'port']) if (/^postgres/.test(url.protocol)) url.searchParams.delete(name)
  return url.href
}
