import { defineConfig } from 'vitest/config'

/** Every ORM on the transaction of a protected request; `npm run test:orms` installs them first. */
export default defineConfig({
  resolve: { tsconfigPaths: true },
  test: {
    include: ['test/orms/**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    globalSetup: ['test/setup/cluster.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
    pool: 'forks',
    // Prisma writes its client as TypeScript.
    server: { deps: { inline: [/node_modules\/\.onlyonce\//] } },
  },
})
