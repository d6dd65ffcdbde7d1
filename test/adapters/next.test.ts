import { runConformance } from './conformance.ts'
import { fetchUnderTest, LACKING } from './servers/fetch.ts'

// A route of Next.js is a plain handler that is given a promise of its parameters.
runConformance(
  fetchUnderTest('Next.js', (params) => ({ params: Promise.resolve(params) }), {
    ...LACKING,
    route_pattern: 'A route of Next.js is told its parameters, not its pattern.',
  }),
)
