import { runConformance } from './conformance.ts'
import { nestUnderTest, onFastify } from './servers/nest.ts'

runConformance(nestUnderTest('NestJS 11 on Fastify', onFastify))
