import type { TestProject } from 'vitest/node'
import startCluster from './cluster.ts'
import { startPgBouncer } from './pgbouncer.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The same server as `adminUrl`, by way of PgBouncer; undefined when the run has none. */
    poolerUrl?: string
  }
}

/**
 * The server that all tests of a run share, and one PgBouncer in front of it.
 *
 * @example
 * // vitest.pgbouncer.config.ts
 * export default defineConfig({ test: { globalSetup: ['test/setup/pooled-cluster.ts'] } })
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const stopCluster = await startCluster(project)
  const { adminUrl } = project.getProvidedContext()
  try {
    const bouncer = await startPgBouncer(adminUrl)
    project.provide('poolerUrl', bouncer.url(adminUrl))
    return () => bouncer.stop().finally(stopCluster)
  } catch (error) {
    await stopCluster()
    throw error
  }
}
