import { runConformance } from './conformance.ts'
import { nextUnderTest } from './servers/fetch.ts'

runConformance(nextUnderTest)
