import { defineConfig } from 'vitest/config'

/** Tests that need packages of Debian beside npm's. */
export default defineConfig({
  test: { include: ['test/debian/**/*.test.ts'], testTimeout: 60_000, hookTimeout: 60_000, pool: 'forks' },
})
