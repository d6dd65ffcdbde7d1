import { inject } from 'vitest'

const poolerUrl = inject('poolerUrl')

/** How the product is told to reach its database in this run: through PgBouncer or not. */
export const POOLER: 'none' | 'transaction' = poolerUrl === undefined ? 'none' : 'transaction'

/** The ways that tests try one after the other. Behind PgBouncer there is but one. */
export const POOLERS: readonly ('none' | 'transaction')[] =
  poolerUrl === undefined ? ['none', 'transaction'] : ['transaction']

/** Where connections may break: between the product and the pooler, or between the pooler and the server. */
export type Place = 'next to the product' | 'next to the server'

/** Without a pooler both are the same place. */
export const PLACES: readonly Place[] =
  poolerUrl === undefined ? ['next to the product'] : ['next to the product', 'next to the server']

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
  return poolerUrl !== undefined
}

/** The address of the same database that the product is given. */
export function productUrl(serverUrl: string): string {
  if (poolerUrl === undefined) return serverUrl
  const url = new URL(poolerUrl)
  url.pathname = new URL(serverUrl).pathname
  return url.href
}
