import type { Summary } from './scenario.ts'

const HEAD = ['scenario', 'seed', 'requests', 'charges', 'faults', 'violations', 'parked', 'quiet s'] as const

/** The table at the end of a run, and below it what was violated. */
export function renderTable(summaries: readonly Summary[]): string {
  const rows = summaries.map((one) =>
    [
      one.name,
      one.seed,
      one.requests,
      one.charges,
      one.faults,
      one.violations.length,
      one.parked,
      one.quiet_s === null ? 'never' : one.quiet_s.toFixed(1),
    ].map(String),
  )
  const all = [HEAD.map(String), ...rows]
  const widths = HEAD.map((_, column) => Math.max(...all.map((row) => row[column]!.length)))
  const lines = all.map((row) => row.map((cell, column) => cell.padEnd(widths[column]!)).join('  '))
  const complaints = summaries.flatMap(({ name, violations }) =>
    violations.slice(0, 20).map(({ rule, what }) => `${name}: ${rule}: ${what}`),
  )
  return [...lines, ...(complaints.length > 0 ? ['', ...complaints] : [])].join('\n')
}
