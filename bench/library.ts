/** The library as it is published, compiled, but typed by its source: checking types needs no build. */
import type * as Fastify from '../src/http/adapters/fastify/index.ts'
import type * as Library from '../src/index.ts'
import type * as Embedded from '../src/store/embedded/index.ts'

const published = (file: string) => import(new URL(`../dist/esm/${file}`, import.meta.url).href)

export const { onlyonce, operation, outbox, postgres, relay, reply } = (await published(
  'index.js',
)) as typeof Library
export const { startEmbeddedPostgres } = (await published('store/embedded/index.js')) as typeof Embedded
export const { idempotency, idempotent } = (await published('adapters/fastify/index.js')) as typeof Fastify
