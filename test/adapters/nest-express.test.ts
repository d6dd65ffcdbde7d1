import { runConformance } from './conformance.ts'
import { nestUnderTest, onExpress } from './servers/nest.ts'

runConformance(nestUnderTest('NestJS 11 on Express', onExpress))
