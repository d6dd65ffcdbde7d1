import { TOPICS } from './cases/index.ts'
import { type AdapterUnderTest, FEATURES, type Feature } from './under-test.ts'

/** The table of docs/guides/frameworks.md: how many cases each adapter passes, and what does not apply to it and why. */
export function resultsTable(adapters: readonly AdapterUnderTest[]): string[] {
  const names = adapters.map(({ name }) => name)
  const rows = TOPICS.map((topic) => {
    const cells = adapters.map(({ lacks }) => {
      const leftOut = topic.cases.filter(({ needs }) => needs.some((feature) => feature in lacks)).length
      const run = topic.cases.length - leftOut
      return leftOut === 0 ? `${run}` : `${run}, ${leftOut} n/a`
    })
    return `| ${[topic.name, ...cells].join(' | ')} |`
  })
  return [`| topic | ${names.join(' | ')} |`, `|---|${names.map(() => '---|').join('')}`, ...rows]
}

/** One line for everything that an adapter declares as not applicable. */
export function notApplicable(adapters: readonly AdapterUnderTest[]): string[] {
  return adapters.flatMap(({ name, lacks }) =>
    (Object.entries(lacks) as [Feature, string][]).map(
      ([feature, reason]) => `- ${name} lacks ${FEATURES[feature]}: ${reason}`,
    ),
  )
}
