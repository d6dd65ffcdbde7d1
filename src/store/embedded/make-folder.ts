import { mkdir, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder, and those above it, where they are missing; one at a time. With `recursive` Node tries for ever, and keeps a processor busy,
 * where a file system says of a folder that it cannot be made because it does not exist, as /proc does.
 */
export async function makeFolder(path: string): Promise<void> {
  const whole = resolve(path)
  if ((await stat(whole).catch(() => null))?.isDirectory()) return
  if (dirname(whole) !== whole) await makeFolder(dirname(whole))
  await mkdir(whole, { mode: 0o700 }).catch(async (error: NodeJS.ErrnoException) => {
    // Another process made it at this moment. A file of that name is another matter.
    const made = error.code === 'EEXIST' && (await stat(whole)).isDirectory()
    if (!made) throw error
  })
}
