import { defineConfig } from 'vitest/config'

/** What `npm pack` makes, in bundlers, frameworks and test runners: `npm run test:package`. */
export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: ['test/package/*.test.ts'],
    globalSetup: ['test/setup/cluster.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 1,
    pool: 'forks',
  },
})
