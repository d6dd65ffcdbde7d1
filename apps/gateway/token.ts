import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The file in the folder of a sandbox that holds its control token, for programs of the same user. */
export const TOKEN_FILE = 'control-token'

/** The token that was given, or the one that is kept, or a new one; from now on it is kept. */
export function keepToken(folder: string, given: string | null): string {
  const file = join(folder, TOKEN_FILE)
  const token = given ?? readToken(file) ?? randomBytes(24).toString('base64url')
  // In one piece: whoever reads it at this moment reads the old one or the new one.
  writeFileSync(`${file}.new`, `${token}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
  return token
}

/** Null where there is none. */
export function readToken(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim() || null
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return null
    throw error
  }
}
