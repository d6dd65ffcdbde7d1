import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'apps/**/*.test.ts', 'torture/**/*.test.ts'],
    exclude: [
      'test/debian/**',
      'test/deploy/**',
      'test/orms/**',
      'test/package/**',
      'test/pgbouncer/**',
      '**/node_modules/**',
    ],
    globalSetup: ['test/setup/cluster.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Two cores: more workers only make the database and the tests wait for each other.
    maxWorkers: 2,
    pool: 'forks',
    typecheck: { enabled: true, include: ['src/**/*.test-d.ts'] },
  },
})
