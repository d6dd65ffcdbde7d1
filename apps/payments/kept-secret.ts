import { randomBytes } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openFolder } from './data-folder.ts'

/**
 * A secret for development, made at the first start and kept in the folder: with another one after a restart, no retry of
 * a stored request would be recognised. It appears by link(), whole or not at all: of two processes that start at once,
 * both read the same.
 */
export async function keptSecret(folder: string, name: string): Promise<string> {
  const file = join(folder, name)
  await openFolder(folder)
  const found = await readFile(file, 'utf8').catch(ignore('ENOENT'))
  if (found !== undefined) return found.trim()
  const draft = join(folder, `${name}.${randomBytes(6).toString('hex')}`)
  await writeFile(draft, randomBytes(32).toString('base64url'), { mode: 0o600, flag: 'wx', flush: true })
  await link(draft, file).catch(ignore('EEXIST'))
  await rm(draft)
  return (await readFile(file, 'utf8')).trim()
}

function ignore(code: string): (error: { code?: string }) => undefined {
  return (error) => {
    if (error.code !== code) throw error
  }
}
