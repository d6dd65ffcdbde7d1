import { defineConfig } from 'vitest/config'

/** The checkout in Chromium, which is Debian's package `chromium`. */
export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: ['apps/**/*.browser.ts'],
    globalSetup: ['test/setup/cluster.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
  },
})
