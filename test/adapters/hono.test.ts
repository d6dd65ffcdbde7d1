import { runConformance } from './conformance.ts'
import { honoUnderTest } from './servers/hono.ts'

runConformance(honoUnderTest)
