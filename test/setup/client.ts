import pg from 'pg'

/**
 * Lends one connection and closes it afterwards.
 *
 * @example
 * await withClient(adminUrl, (client) => client.query('CREATE DATABASE shop'))
 */
export async function withClient<T>(
  url: string,
  work: (client: pg.Client) => Promise<T>,
  options: pg.ClientConfig = {},
): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000, ...options })
  // A connection that breaks fails its query; unheard, the event would end the whole process as well.
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/**
 * The address of another database on the same server.
 *
 * @example
 * addressWithin('postgres://u:p@127.0.0.1:5432/postgres', 'shop') // postgres://u:p@127.0.0.1:5432/shop
 */
export function addressWithin(url: string, database: string): string {
  const address = new URL(url)
  address.pathname = `/${database}`
  return address.href
}
