import pg from 'pg'
import { acrossCopies } from '../core/copies.ts'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import type { PostgresTx } from '../store/postgres/index.ts'
import { keepOpen, TX, TxClient, type TxClientConfig } from './client.ts'

/**
 * The running transaction, as a pool of pg: what an ORM writes through it is committed together with the record of the request, or not at all. It takes the
 * `tx` of `once.transaction`, of a route with `protect: 'transaction'`, and of `op.transaction`. The same `tx` gives the same pool.
 *
 * A transaction that the ORM begins is a savepoint. Two at once run one after the other. An ORM's hooks "after commit" run when the savepoint ends, and not when
 * the request is committed.
 *
 * @example
 * await once.transaction({ account, operation: 'transfers.create', key, input }, async (tx) => {
 *   const db = drizzle(poolOf(tx))
 *   await db.execute('INSERT INTO transfers (id) VALUES (1)')
 *   return { id: 1 }
 * })
 */
export function poolOf(tx: PostgresTx): pg.Pool {
  const known = pools.get(checked(tx))
  if (known !== undefined) return known
  const made = new TxPool(tx, {})
  pools.set(tx, made)
  return made
}

/** By transaction, also where several copies of the package are in the process. */
const pools = acrossCopies('orm_pools', () => new WeakMap<PostgresTx, pg.Pool>())

/** The same with parsers of types that an ORM gives to its connections. */
export function poolWith(tx: PostgresTx, types: pg.CustomTypesConfig | undefined): pg.Pool {
  return new TxPool(checked(tx), types === undefined ? {} : { types })
}

/** What ORMs take in place of the package pg. */
export type Driver = Omit<typeof pg, 'Pool' | 'Client'> & {
  readonly Pool: new (options?: pg.PoolConfig) => pg.Pool
  readonly Client: new (config?: string | pg.ClientConfig) => pg.Client
}

/**
 * The package pg, with pools and clients that lead to the running transaction, for ORMs that make their connections themselves. Addresses and passwords that they
 * are given are ignored; parsers of types are not.
 *
 * @example
 * const sequelize = new Sequelize({ dialect: 'postgres', dialectModule: driverOf(tx) })
 */
export function driverOf(tx: PostgresTx): Driver {
  checked(tx)
  return {
    ...pg,
    // biome-ignore lint/complexity/useArrowFunction: it is called with `new`.
    Pool: function (options: pg.PoolConfig = {}) {
      return new TxPool(tx, options)
    } as unknown as Driver['Pool'],
    Client: class extends TxClient {
      constructor(config?: string | pg.ClientConfig) {
        super(configOf(tx, typeof config === 'object' ? config : {}))
      }
    } as unknown as Driver['Client'],
  }
}

/** A pool of pg's own, whose clients lead to a transaction. What it does beside that is pg's. */
class TxPool extends pg.Pool {
  readonly [TX]: PostgresTx
  /**
   * A library with another copy of pg may not know this pool for one, and make a pool of its own with this one as its settings. With these members that one leads
   * to the transaction, too, and not to the database that the environment names.
   */
  readonly Client = TxClient

  constructor(tx: PostgresTx, options: pg.PoolConfig) {
    const settings = { ...configOf(tx, options), Client: TxClient }
    super({ ...settings, max: LIMITS.ormClientsMax, idleTimeoutMillis: 0 } as unknown as pg.PoolConfig)
    this[TX] = tx
  }

  /** Code that does not await what it sends has a client before it sends anything: the end of the transaction waits for that, too. */
  override connect(callback?: unknown): never {
    if (typeof callback !== 'function') return keepOpen(this[TX], super.connect()) as never
    let lent = () => {}
    keepOpen(
      this[TX],
      new Promise<void>((resolve) => {
        lent = resolve
      }),
    )
    super.connect((...given) => {
      lent()
      callback(...given)
    })
    return undefined as never
  }
}

function configOf(tx: PostgresTx, { types }: pg.ClientConfig): TxClientConfig {
  return { [TX]: tx, ...(types !== undefined && { types }) }
}

/** A pool gives every statement another connection, and a client of pg has no protected request around it. */
function checked(tx: PostgresTx): PostgresTx {
  const { query, connect } = (tx ?? {}) as { readonly query?: unknown; readonly connect?: unknown }
  if (typeof query === 'function' && connect === undefined) return tx
  throw new OnlyonceError('option_invalid', { detail: NO_TX })
}

const NO_TX =
  "poolOf takes the tx of once.transaction, of a route with protect: 'transaction', or of op.transaction. A pool or a client of pg can be given to the ORM itself."
