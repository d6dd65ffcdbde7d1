import { access, lchown, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { OnlyonceError } from '../../core/errors.ts'

/**
 * Whether something stands at a path. A folder that cannot be entered is an error, not an absence.
 *
 * @example
 * if (!(await exists(join(data, 'PG_VERSION')))) await initialize()
 */
export async function exists(path: string): Promise<boolean> {
  try {
    await access(path)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return false
    if (code !== 'EACCES') throw error
    throw new OnlyonceError('option_invalid', { detail: `${path} belongs to another user.`, cause: error })
  }
}

/**
 * For the loser of a race to make the same file or folder: the winner's is as good.
 *
 * @example
 * await link(draft, file).catch(ignoreExisting)
 */
export function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST' && error.code !== 'ENOTEMPTY') throw error
}

/**
 * Makes the names in a folder durable. Some file systems cannot, and say so; then there is nothing to do.
 *
 * @example
 * await rename(draft, final)
 * await syncFolder(dirname(final))
 */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } catch (error) {
    if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    await handle.close()
  }
}

/**
 * Removes what carries a prefix and has not changed for a while.
 *
 * @example
 * await removeAbandoned('/var/lib/onlyonce', 'initializing-', 600_000)
 */
export async function removeAbandoned(folder: string, prefix: string, ageMinMs: number): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(prefix)) continue
    const path = join(folder, name)
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined && Date.now() - found.mtimeMs > ageMinMs)
      await rm(path, { recursive: true, force: true })
  }
}

/**
 * Gives a folder and all that is in it to a user.
 *
 * @example
 * await chownAll('/var/lib/onlyonce/data', { uid: 101, gid: 104 })
 */
export async function chownAll(path: string, owner: { uid: number; gid: number }): Promise<void> {
  // The folder itself last: as long as it is root's, the next start knows that this is not finished.
  for (const entry of await readdir(path, { withFileTypes: true, recursive: true })) {
    await lchown(join(entry.parentPath, entry.name), owner.uid, owner.gid)
  }
  await lchown(path, owner.uid, owner.gid)
}
