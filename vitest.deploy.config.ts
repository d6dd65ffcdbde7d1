import { defineConfig } from 'vitest/config'

/** The deployment kit: needs Debian's `prometheus` for `promtool`. */
export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: ['test/deploy/**/*.test.ts'],
    globalSetup: ['test/setup/cluster.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
  },
})
