import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { processExists } from './process.ts'

/**
 * The process that a server belongs to: the one that started it, until that one dies and another takes over.
 * Only the owner ends a server, so that a script which looks into a service's folder does not end its database.
 *
 * @example
 * if (ownerOf(folder, serverPid, startedByPid) === process.pid) await stop()
 */
export function ownerOf(
  folder: string,
  serverPid: number,
  startedByPid: number | undefined,
): number | undefined {
  const ownerPid = readTakeover(folder, serverPid) ?? startedByPid
  return ownerPid !== undefined && processExists(ownerPid) ? ownerPid : undefined
}

/**
 * Notes that this process owns the server from now on. The note names the server too: it is void for the next.
 *
 * @example
 * if (ownerOf(folder, pid, startedByPid) === undefined) await takeOver(folder, pid)
 */
export async function takeOver(folder: string, serverPid: number): Promise<void> {
  await writeFile(join(folder, 'owner'), `${serverPid} ${process.pid}\n`, { mode: 0o600 })
}

function readTakeover(folder: string, serverPid: number): number | undefined {
  try {
    const [server, owner] = readFileSync(join(folder, 'owner'), 'utf8').split(' ').map(Number)
    return server === serverPid ? owner : undefined
  } catch {
    return undefined
  }
}
