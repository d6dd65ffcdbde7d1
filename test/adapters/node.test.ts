import { runConformance } from './conformance.ts'
import { nodeUnderTest } from './servers/node.ts'

runConformance(nodeUnderTest)
