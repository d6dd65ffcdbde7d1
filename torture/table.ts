import type { Summary } from './scenario.ts'

const HEAD = ['scenario', 'seed', 'requests', 'charges', 'faults', 'violations', 'parked', 'quiet s'] as const

function countsOf({ requests, charges, faults, violations, parked }: Summary): readonly number[] {
  return [requests, charges, faults, violations.length, parked]
}

/** One scenario of what `--json` prints, for programs: the names are a contract. */
export function jsonOf({ name, seed, requests, charges, faults, violations, parked, quietS }: Summary) {
  return { name, seed, requests, charges, faults, violations: violations.length, parked, quiet_s: quietS }
}

/** The table at the end of a run, with a sum where there are several scenarios, and below it what was violated. */
export function renderTable(summaries: readonly Summary[]): string {
  const rows = summaries.map((one) => [
    one.name,
    `${one.seed}`,
    ...countsOf(one).map(String),
    one.quietS === null ? 'never' : one.quietS.toFixed(1),
  ])
  const totals = summaries.reduce(
    (sums, one) => sums.map((sum, n) => sum + countsOf(one)[n]!),
    [0, 0, 0, 0, 0],
  )
  const total = summaries.length > 1 ? [['all', '', ...totals.map(String), '']] : []
  const all = [HEAD.map(String), ...rows, ...total]
  const widths = HEAD.map((_, column) => Math.max(...all.map((row) => row[column]!.length)))
  const lines = all.map((row) => row.map((cell, column) => cell.padEnd(widths[column]!)).join('  '))
  const complaints = summaries.flatMap(({ name, violations }) =>
    violations.slice(0, 20).map(({ rule, what }) => `${name}: ${rule}: ${what}`),
  )
  return [...lines, ...(complaints.length > 0 ? ['', ...complaints] : [])].join('\n')
}
