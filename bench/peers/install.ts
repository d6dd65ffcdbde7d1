import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/**
 * Peers are packages of their own, with a lock file each: what they are compared with does not depend on them. Installed when
 * they are first measured, without scripts.
 */
export function installPeer(name: string): NodeJS.Require {
  const folder = fileURLToPath(new URL(`./${name}`, import.meta.url))
  if (!existsSync(`${folder}/node_modules`)) {
    execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', folder], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
  }
  return createRequire(`${folder}/package.json`)
}
