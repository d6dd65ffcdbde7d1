/** Bounds that are far shorter than the defaults, so that a stall of seconds runs into all of them. */
export const BOUNDS = {
  store: {
    // The pool's own time-out is the same, as it is by default.
    connectionWaitMaxMs: 500,
    statementMaxMs: 700,
    transactionMaxMs: 1_500,
    settleMaxMs: 1_500,
  },
  route: { deadlineMs: 2_500 },
} as const

export const POOL_SIZE = 4

export const FLOOD_ROUTES = ['/transaction', '/handler', '/operation'] as const
export type FloodRoute = (typeof FLOOD_ROUTES)[number]
