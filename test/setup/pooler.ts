import { inject } from 'vitest'

const pooler_url = inject('pooler_url')

/** How the product is told to reach its database in this run: through PgBouncer or not. */
export const POOLER: 'none' | 'transaction' = pooler_url === undefined ? 'none' : 'transaction'

/** The ways that tests try one after the other. Behind PgBouncer there is but one. */
export const POOLERS: readonly ('none' | 'transaction')[] =
  pooler_url === undefined ? ['none', 'transaction'] : ['transaction']

/** Where connections may break: between the product and the pooler, or between the pooler and the server. */
export type Place = 'next to the product' | 'next to the server'

/** Without a pooler both are the same place. */
export const PLACES: readonly Place[] =
  pooler_url === undefined ? ['next to the product'] : ['next to the product', 'next to the server']

/** What cannot be the same behind a pooler, by its nature. A test that asks asserts something else there instead. */
const DIFFERENCES = {
  'the server does not see clients':
    "its connections are the pooler's and outlive clients; the pooler knows those",
  'two connections are two transactions':
    'whoever comes third waits in the pooler, whatever the pools are like',
  'a pooler refuses nobody':
    'a new client waits for the server that the pooler waits for, until one of them gives up',
} as const

/** Whether this run is behind PgBouncer, asked by a test that this makes a difference to. */
export function behindPooler(_difference: keyof typeof DIFFERENCES): boolean {
  return pooler_url !== undefined
}

/** The address of the same database that the product is given. */
export function productUrl(server_url: string): string {
  if (pooler_url === undefined) return server_url
  const url = new URL(pooler_url)
  url.pathname = new URL(server_url).pathname
  return url.href
}
