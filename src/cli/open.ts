/** The database, as commands use it. */
import { randomBytes } from 'node:crypto'
import type { Pool } from 'pg'
import type { Onlyonce } from '../onlyonce/door.ts'
import { onlyonce } from '../onlyonce/onlyonce.ts'
import type { Store } from '../store/contract.ts'
import type { PostgresTx } from '../store/postgres/index.ts'
import { keysInUse } from '../store/postgres/survey.ts'
import { openToLook } from '../store/postgres/to-look.ts'
import type { Call } from './command.ts'
import { usage } from './exit.ts'
import { requireDatabase, requireRing } from './settings.ts'

export interface Opened {
  readonly once: Onlyonce<PostgresTx>
  readonly pool: Pool
  readonly schema: string
}

/**
 * Opens the database for the time of some work. The secret of the front door is a random one: no command claims a key, so no request is
 * ever compared with it, and the start notes no key.
 */
export async function withOnce<T>(call: Call, work: (opened: Opened) => Promise<T>): Promise<T> {
  const { schema, pooler } = call.settings
  const { store, pool } = openToLook({ connectionString: requireDatabase(call.settings), schema, pooler })
  const encryption = call.settings.encryption()
  const once = onlyonce({
    store,
    secret: randomBytes(32),
    ...(encryption !== null && { encryption }),
    // What the service lets pass is for the service to say: here every key can be looked at.
    keys: { lengthMin: 1, allowSensitive: true },
    background: false,
    // Without an observer, what goes wrong is also told on stderr, beside our own words.
    observe: { signal: () => {} },
  })
  try {
    return await work({ once, pool, schema })
  } finally {
    await once.close()
  }
}

/** The store as it is, before any start: for what has to work where the tables are missing, or are not what they should be. */
export async function withStore<T>(
  call: Call,
  work: (opened: { store: Store<PostgresTx>; pool: Pool; schema: string }) => Promise<T>,
): Promise<T> {
  const { schema, pooler } = call.settings
  const { store, pool } = openToLook({ connectionString: requireDatabase(call.settings), schema, pooler })
  try {
    return await work({ store, pool, schema })
  } finally {
    await store.close()
  }
}

/** A pool alone. */
export async function withPool<T>(call: Call, work: (pool: Pool, schema: string) => Promise<T>): Promise<T> {
  return await withStore(call, ({ pool, schema }) => work(pool, schema))
}

/**
 * Before something is written that the service seals: it must be sealed here too, and with a key that the service has. A reply under a
 * key that no process knows could never be replayed.
 */
export async function requireSealing(call: Call, pool: Pool, schema: string): Promise<void> {
  const used = (await keysInUse(pool, schema)).filter(({ purpose }) => purpose === 'reply')
  const given = call.settings.encryption()
  if (given === null) {
    if (used.length === 0) return
    throw usage(
      'The service seals what it stores, so this has to be sealed too. Set ONLYONCE_ENCRYPTION, or give --encryption-file.',
    )
  }
  const ring = requireRing(given, 'reply')
  const listed = used.find(({ keyId }) => keyId === ring.currentId)
  if (listed === undefined) {
    throw usage(
      `No process of the service has started with the encryption key ${JSON.stringify(ring.currentId)} as its current one. Make a key current here that the service has.`,
    )
  }
  if (listed.digest !== null && listed.digest !== ring.digestOf(ring.currentId)) {
    throw usage(
      `The encryption key ${JSON.stringify(ring.currentId)} has other bytes here than in the service.`,
    )
  }
}
