import express5 from 'express'
import express4 from 'express4'
import Koa3 from 'koa'
import Koa2 from 'koa2'
import type { AdapterUnderTest } from '../under-test.ts'
import { type ExpressPackage, expressUnderTest } from './express.ts'
import { fastifyUnderTest } from './fastify.ts'
import { fetchUnderTest, nextUnderTest } from './fetch.ts'
import { honoUnderTest } from './hono.ts'
import { koaUnderTest } from './koa.ts'
import { nestUnderTest, onExpress, onFastify } from './nest.ts'
import { nodeUnderTest } from './node.ts'

/** Every adapter, in the order in which the table of results has them. */
export const ADAPTERS: readonly AdapterUnderTest[] = [
  expressUnderTest('Express 5', express5),
  expressUnderTest('Express 4', express4 as unknown as ExpressPackage),
  fastifyUnderTest,
  koaUnderTest('Koa 3', Koa3),
  koaUnderTest('Koa 2', Koa2),
  nodeUnderTest,
  honoUnderTest,
  nextUnderTest,
  fetchUnderTest,
  nestUnderTest('NestJS 11 on Express', onExpress),
  nestUnderTest('NestJS 11 on Fastify', onFastify),
]
