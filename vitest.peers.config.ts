import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Plugin } from 'vite'
import { defineConfig } from 'vitest/config'

/**
 * The tests of the optional peers with other versions of them: PEERS names a folder with a package.json, and with these packages
 * installed. `npm run test:peers` runs them with the oldest and with the newest.
 */
const folder = process.env.PEERS ?? ''
const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

/** Found from the folder, as if the importing file were there. */
const peers: Plugin = {
  name: 'peers',
  enforce: 'pre',
  async resolveId(id) {
    const name = Object.keys(dependencies).find((one) => id === one || id.startsWith(`${one}/`))
    return name === undefined ? null : await this.resolve(id, join(folder, 'index.js'), { skipSelf: true })
  },
}

export default defineConfig({
  plugins: [peers],
  resolve: { tsconfigPaths: true },
  test: {
    include: [
      'test/adapters/{nest-express,fastify,hono}.test.ts',
      'test/contract/{prometheus,opentelemetry}.test.ts',
      'test/rate-limits/*.test.ts',
    ],
    globalSetup: ['test/setup/cluster.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    pool: 'forks',
  },
})
