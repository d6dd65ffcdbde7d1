import { mkdir, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'

/** What is for development is kept here. One line says why it cannot be. */
export class FolderUnusable extends Error {
  constructor(folder: string, reason: string) {
    super(`DATA_FOLDER cannot be used: ${folder} ${reason}. Set it to a folder that this user may write.`)
    this.name = 'FolderUnusable'
  }
}

/** Makes the folder, and those above it, where they are missing. */
export async function openFolder(folder: string): Promise<void> {
  try {
    await make(resolve(folder))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw error instanceof FolderUnusable
      ? error
      : new FolderUnusable(folder, `cannot be made (${code ?? 'no reason was told'})`)
  }
}

/** One at a time: with `recursive` Node tries for ever where a file system says of a folder that it does not exist, as /proc does. */
async function make(path: string): Promise<void> {
  const found = await stat(path).catch(() => null)
  if (found?.isDirectory()) return
  if (found !== null) throw new FolderUnusable(path, 'is a file')
  if (dirname(path) !== path) await make(dirname(path))
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
}
