import pg from 'pg'
import { OnlyonceError } from '../../core/errors.ts'
import { type Cluster, ROLE } from './cluster.ts'
import { EMBEDDED_LIMITS } from './limits.ts'

/** What a running server says of itself. */
export interface Introduction {
  readonly startedByPid: number | undefined
  readonly settings: string | undefined
}

/**
 * The address of the server with the password in it.
 *
 * @example
 * const pool = new pg.Pool({ connectionString: addressOf(cluster, 15432) })
 */
export function addressOf(cluster: Pick<Cluster, 'password'>, port: number): string {
  return `postgres://${ROLE}:${cluster.password}@127.0.0.1:${port}/postgres`
}

/**
 * Connects and asks. Undefined means that no server of this folder answers at this port, not now: it starts,
 * recovers or ends, or it is another one.
 *
 * @example
 * const introduction = await ask(cluster, lock.port)
 */
export async function ask(cluster: Cluster, port: number): Promise<Introduction | undefined> {
  const client = new pg.Client({
    connectionString: addressOf(cluster, port),
    connectionTimeoutMillis: EMBEDDED_LIMITS.connectMaxMs,
    query_timeout: EMBEDDED_LIMITS.connectMaxMs,
  })
  // A server that ends while it is being asked is an answer too; unheard, the event would end this process.
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<Record<'folder' | 'owner' | 'settings', string | null>>(ASK_SQL)
    const row = rows[0]
    if (row === undefined || row.folder !== cluster.data) return undefined
    return { startedByPid: Number(row.owner) || undefined, settings: row.settings ?? undefined }
  } catch (error) {
    if ((error as { code?: string }).code === WRONG_PASSWORD) throw explainStranger(cluster, port, error)
    return undefined
  } finally {
    await client.end().catch(() => {})
  }
}

const WRONG_PASSWORD = '28P01'

function explainStranger(cluster: Cluster, port: number, cause: unknown): OnlyonceError {
  const detail = `The server on port ${port} refuses the password in ${cluster.folder}. Restore that file, or stop the server.`
  return new OnlyonceError('store_unavailable', { detail, cause })
}

const ASK_SQL = `SELECT current_setting('data_directory') AS folder,
                        current_setting('onlyonce.owner_pid', true) AS owner,
                        current_setting('onlyonce.settings', true) AS settings`
