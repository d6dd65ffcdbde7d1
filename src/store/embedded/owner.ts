import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { processExists } from './process.ts'

/**
 * The process that a server belongs to: the one that started it, until that one dies and another takes over.
 * Only the owner ends a server, so that a script which looks into a service's folder does not end its database.
 *
 * @example
 * if (ownerOf(folder, server_pid, started_by_pid) === process.pid) await stop()
 */
export function ownerOf(
  folder: string,
  server_pid: number,
  started_by_pid: number | undefined,
): number | undefined {
  const owner_pid = readTakeover(folder, server_pid) ?? started_by_pid
  return owner_pid !== undefined && processExists(owner_pid) ? owner_pid : undefined
}

/**
 * Notes that this process owns the server from now on. The note names the server too: it is void for the next.
 *
 * @example
 * if (ownerOf(folder, pid, started_by_pid) === undefined) await takeOver(folder, pid)
 */
export async function takeOver(folder: string, server_pid: number): Promise<void> {
  await writeFile(join(folder, 'owner'), `${server_pid} ${process.pid}\n`, { mode: 0o600 })
}

function readTakeover(folder: string, server_pid: number): number | undefined {
  try {
    const [server, owner] = readFileSync(join(folder, 'owner'), 'utf8').split(' ').map(Number)
    return server === server_pid ? owner : undefined
  } catch {
    return undefined
  }
}
