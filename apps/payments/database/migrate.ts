import { migrate as bringUp } from 'onlyonce/postgres'
import type pg from 'pg'

const FOLDER = new URL('../migrations/', import.meta.url)

/**
 * Brings the schema `payments` up to date, by the library's own way to do it: any number of processes may call it at once. Throws
 * `store_unavailable` where the database cannot be reached.
 *
 * @example
 * await migrate(pool)
 */
export async function migrate(pool: pg.Pool, options: { readonly folder?: URL } = {}): Promise<void> {
  await bringUp(pool, { schema: 'payments', mode: 'apply', folder: options.folder ?? FOLDER })
}
