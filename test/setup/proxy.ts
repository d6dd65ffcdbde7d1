import { type FaultProxy, startFaultProxy } from '../../src/testing/index.ts'
import { cleanUpLater } from './clean-up.ts'
import { withClient } from './client.ts'
import type { FreshDatabase } from './database.ts'
import { startPgBouncer } from './pgbouncer.ts'
import type { Place } from './pooler.ts'
import { waitUntil } from './wait.ts'

const ANSWER_MAX_MS = 1_000

export interface ProxiedDatabase {
  readonly proxy: FaultProxy
  /** What the product is given. */
  readonly url: string
  /**
   * Ends the fault. A pooler turns clients away for as long as it has not found its server again, so that is waited
   * for; clients of the product find by themselves what became of their own connections.
   */
  heal(): Promise<void>
}

/**
 * A fault proxy on the way from the product to its database. Behind the pooler means: in front of the server, with
 * a PgBouncer of its own that knows no other way.
 *
 * @example
 * const { proxy, url } = await proxyTo(database, { place: 'next to the server' })
 */
export async function proxyTo(
  database: Pick<FreshDatabase, 'url' | 'serverUrl'>,
  { place = 'next to the product', seed }: { place?: Place; seed?: number } = {},
): Promise<ProxiedDatabase> {
  const targetUrl = place === 'next to the product' ? database.url : database.serverUrl
  const { hostname: host, port } = new URL(targetUrl)
  const target = { host, port: Number(port) }
  const proxy = await startFaultProxy(seed === undefined ? { target } : { target, seed })
  cleanUpLater(() => proxy.close())
  if (place === 'next to the product') {
    return { proxy, url: proxy.url(targetUrl), heal: async () => proxy.setFault(null) }
  }
  const bouncer = await startPgBouncer(proxy.url(targetUrl))
  cleanUpLater(() => bouncer.stop())
  const url = bouncer.url(targetUrl)
  return {
    proxy,
    url,
    async heal() {
      proxy.setFault(null)
      await waitUntil('the pooler has found its server', () => isAnswered(url))
    },
  }
}

/** Whether somebody who connects now gets an answer from the server, and soon. */
export async function isAnswered(url: string): Promise<boolean> {
  const bounds = { connectionTimeoutMillis: ANSWER_MAX_MS, query_timeout: ANSWER_MAX_MS }
  return await withClient(url, (client) => client.query('SELECT 1'), bounds).then(
    () => true,
    () => false,
  )
}
