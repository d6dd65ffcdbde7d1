import type { MadeKey, MadeSecret } from '../contract.ts'
import { sqlState } from './classify.ts'
import type { Connections } from './connections.ts'
import { bind } from './flush.ts'
import type { Statements } from './statements.ts'

/**
 * Gives the process the secret that the database keeps. Where there is none yet, the process offers one of its own; of several that start at
 * once the first insert decides, and all of them read what is there afterwards.
 */
export async function takeMadeSecret(
  connections: Connections,
  statements: Statements,
  { candidate, take }: MadeSecret,
): Promise<void> {
  let kept = await read(connections, statements).catch((error) => {
    // A process that has a secret of its own may have a role that must not see this one.
    if (candidate === null && sqlState(error) === INSUFFICIENT_PRIVILEGE) return null
    throw error
  })
  if (kept === null && candidate !== null) {
    const bytes = candidate.bytes.toString('hex')
    await connections.runBounded(bind(statements.insertMadeSecret, candidate.keyId, bytes))
    kept = await read(connections, statements)
  }
  if (kept !== null) take(kept, { lasts: true })
}

const INSUFFICIENT_PRIVILEGE = '42501'

async function read(connections: Connections, { readMadeSecret }: Statements): Promise<MadeKey | null> {
  const [row] = (await connections.run(bind(readMadeSecret))).rows[0]!
  return row === undefined ? null : { keyId: row[0]!, bytes: Buffer.from(row[1]!, 'hex') }
}
