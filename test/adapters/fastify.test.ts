import { runConformance } from './conformance.ts'
import { fastifyUnderTest } from './servers/fastify.ts'

runConformance(fastifyUnderTest)
