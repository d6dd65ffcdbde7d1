/**
 * npm run test:peers
 *
 * Runs the tests of the optional peers with the oldest version of each, and with a newer one where the project has an older.
 */
import { spawnSync } from 'node:child_process'
import { installPackages } from './install.ts'

for (const project of ['oldest', 'newest']) {
  const PEERS = installPackages(project)
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'vitest.peers.config.ts']
  const { status } = spawnSync(process.execPath, args, { env: { ...process.env, PEERS }, stdio: 'inherit' })
  if (status !== 0) process.exit(1)
}
