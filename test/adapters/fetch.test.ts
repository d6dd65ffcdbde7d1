import { runConformance } from './conformance.ts'
import { fetchUnderTest, LACKING } from './servers/fetch.ts'

runConformance(
  fetchUnderTest('Request => Response', () => ({}), {
    ...LACKING,
    route_pattern: 'A plain handler is told nothing but the path.',
  }),
)
