import Koa from 'koa'
import { runConformance } from './conformance.ts'
import { koaUnderTest } from './servers/koa.ts'

runConformance(koaUnderTest('Koa 3', Koa))
