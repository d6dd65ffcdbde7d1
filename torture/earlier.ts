import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const TARBALL = fileURLToPath(new URL('./earlier/payments-0.1.0.tgz', import.meta.url))
/** Within the project, so that its packages are found. */
const FOLDER = fileURLToPath(new URL('./.compiled/earlier/', import.meta.url))

/**
 * The payment service as it was in an earlier state, for rolling upgrades: one compiled file and its migrations, kept as a
 * tarball. Replace it when the schema states that processes of that version cannot work with it any more.
 */
export function unpackEarlier(): string {
  mkdirSync(FOLDER, { recursive: true })
  execFileSync('tar', ['-xzf', TARBALL, '-C', FOLDER])
  return `${FOLDER}apps/payments/.compiled/main.mjs`
}
