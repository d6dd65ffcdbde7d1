import { runConformance } from './conformance.ts'
import { fetchUnderTest } from './servers/fetch.ts'

runConformance(fetchUnderTest)
