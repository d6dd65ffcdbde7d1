import type Koa from 'koa'
import Koa2 from 'koa2'
import { runConformance } from './conformance.ts'
import { koaUnderTest } from './servers/koa.ts'

runConformance(koaUnderTest('Koa 2', Koa2 as unknown as typeof Koa))
