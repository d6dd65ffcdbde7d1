import { defineConfig } from 'vitest/config'

/** The store, everything that protects and the payment service, behind PgBouncer with two connections to the server. */
export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: [
      'src/store/postgres/conformance.test.ts',
      'test/contract/**/*.test.ts',
      'test/crash/{handler,transaction,relay}.test.ts',
      'test/operations/**/*.test.ts',
      'test/outbox/**/*.test.ts',
      'test/webhooks/**/*.test.ts',
      'test/torture/{late-commit,leases,lost-commit,one-key,server-crash,vanished}.test.ts',
      'test/migrations.faults.test.ts',
      'test/pgbouncer/**/*.test.ts',
    ],
    // PgBouncer itself answers for a database, a user or a password that is wrong, in other words than the server.
    exclude: ['test/contract/misconfigured.test.ts', '**/node_modules/**'],
    globalSetup: ['test/setup/pooled-cluster.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    pool: 'forks',
  },
})
