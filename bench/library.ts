/** The library as it is published, compiled, but typed by its source: checking types needs no build. */
import type * as Fastify from '../src/http/adapters/fastify/index.ts'
import type * as Library from '../src/index.ts'
import type * as Orm from '../src/orm/index.ts'
import type * as Outbox from '../src/outbox/index.ts'
import type * as Embedded from '../src/store/embedded/index.ts'
import type * as Postgres from '../src/store/postgres/index.ts'

const published = (file: string) => import(new URL(`../dist/esm/${file}`, import.meta.url).href)

export const { onlyonce, operation, reply } = (await published('index.js')) as typeof Library
export const { outbox, relay } = (await published('outbox/index.js')) as typeof Outbox
export const { currentTx, poolOf } = (await published('orm/index.js')) as typeof Orm
export const { postgres } = (await published('store/postgres/index.js')) as typeof Postgres
export const { startEmbeddedPostgres } = (await published('store/embedded/index.js')) as typeof Embedded
export const { idempotency, idempotent } = (await published(
  'http/adapters/fastify/index.js',
)) as typeof Fastify
