import { runConformance } from './conformance.ts'
import { hono } from './servers/hono.ts'

runConformance(hono)
