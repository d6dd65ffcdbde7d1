import type { PoolClient } from 'pg'
import { OnlyonceError } from '../../core/errors.ts'
import type { KeyIds } from '../contract.ts'
import { keyRingIncomplete, lacking, type NamedKey } from '../missing-keys.ts'
import { faultBehind, sqlState } from './classify.ts'
import type { Connections } from './connections.ts'
import { bind, flush, type Row, statement } from './flush.ts'
import { arrayLiteral } from './rows.ts'
import { setLockWaitAlone, setStatementMaxAlone } from './sql/session.ts'
import type { Statements } from './statements.ts'

/**
 * Refuses where a live record names a key that this process lacks, and notes the current keys for others to find.
 *
 * The list of key ids is what makes this cheap: a usual start reads it and nothing more. Only where it holds an id
 * that this process lacks are the records read, and an id that none of them names is taken off the list, so
 * that the next start need not read them again.
 *
 * A process that still has such a key may go on writing with it after that. Then a record names a key that is
 * not on the list, and a later start without the key is not refused; it is told `fingerprint_key_unknown` or
 * `seal_key_unknown` when it meets the record, and runs nothing. So the list warns early; safety does not
 * depend on it. The next start of a process with that key puts it back.
 */
export async function checkKeys(
  connections: Connections,
  statements: Statements,
  keys: KeyIds,
): Promise<void> {
  const listed = (await connections.run(bind(statements.readKeyIds))).rows[0]!.map(readKey)
  const foreign = lacking(listed, keys)
  if (foreign.length > 0) {
    const named = await findNamed(connections, statements, foreign, keys)
    for (const key of foreign.filter((one) => !includes(named, one))) {
      // A role that may not delete leaves it listed: the next start only asks again. Other bytes under an id of our own are
      // replaced below: with the digest of the earlier ones this very process could not start again.
      await connections.runBounded(bind(statements.deleteKeyId, key.purpose, key.keyId)).catch((error) => {
        if (sqlState(error) !== INSUFFICIENT_PRIVILEGE) throw error
      })
    }
    if (named.length > 0) throw keyRingIncomplete(named, keys)
  }
  // Last: a process that is refused writes no record. And only what is new: a usual start writes nothing.
  const told = (one: NamedKey) => one.digest !== null || keys.digestOf === undefined
  const known = listed.filter((one) => told(one) && !foreign.includes(one))
  const fresh = currentOf(keys).filter((one) => !includes(known, one))
  if (fresh.length === 0) return
  const digests = arrayLiteral(fresh.map(({ digest }) => digest ?? ''))
  const replaced = arrayLiteral(fresh.map((one) => foreign.find((other) => isSame(one, other))?.digest ?? ''))
  await connections.runBounded(bind(statements.insertKeyIds, ...columns(fresh), digests, replaced))
}

const INSUFFICIENT_PRIVILEGE = '42501'

/** Reads records, and so has a bound of its own, which the server keeps: it would go on reading with no caller left. */
async function findNamed(
  connections: Connections,
  statements: Statements,
  missing: readonly NamedKey[],
  keys: KeyIds,
): Promise<readonly NamedKey[]> {
  const { keyCheckMaxMs, statementMaxMs } = connections.settings
  const find = bind(statements.findNamedKeys, ...columns(missing))
  // Not SET LOCAL: outside of a transaction block it leaves a warning in the log of the server.
  const wait = bind(statement(setLockWaitAlone(connections.settings.lockWaitMaxMs)))
  const bound = bind(statement(setStatementMaxAlone(keyCheckMaxMs)))
  const waitOf = (client: PoolClient) => (connections.prefix(client).length > 0 ? [wait] : [])
  try {
    const { rows } = await connections.repeat(() =>
      connections.use(
        (client) => flush(client, [...waitOf(client), bound, find], connections.named),
        keyCheckMaxMs + statementMaxMs,
      ),
    )
    return rows.at(-1)!.map(readKey)
  } catch (error) {
    const fault = faultBehind(error)
    if (fault === 'lock_wait') throw new OnlyonceError('store_unavailable', { cause: error })
    if (fault !== 'too_slow') throw error
    // Not known is not absent: a key too many in the ring does no harm, one too few does.
    const why = ` Whether records still name them could not be found out in ${keyCheckMaxMs} ms.`
    throw keyRingIncomplete(missing, keys, why, error)
  }
}

/** New records are made with the current keys and no others. */
function currentOf(keys: KeyIds): readonly NamedKey[] {
  return (['fingerprint', 'reply'] as const).flatMap((purpose) =>
    keys[purpose]
      .slice(0, 1)
      .map((keyId) => ({ purpose, keyId, digest: keys.digestOf?.(purpose, keyId) ?? null })),
  )
}

function columns(keys: readonly NamedKey[]): [string, string] {
  return [arrayLiteral(keys.map((key) => key.purpose)), arrayLiteral(keys.map((key) => key.keyId))]
}

function readKey(row: Row): NamedKey {
  return { purpose: row[0] as NamedKey['purpose'], keyId: row[1]!, digest: row[2] ?? null }
}

function includes(keys: readonly NamedKey[], one: NamedKey): boolean {
  return keys.some((key) => isSame(key, one))
}

function isSame(one: NamedKey, other: NamedKey): boolean {
  return one.purpose === other.purpose && one.keyId === other.keyId
}
