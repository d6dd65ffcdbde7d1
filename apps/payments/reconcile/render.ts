import type { Movement } from '../gateway/index.ts'
import { formatMoney } from '../money/index.ts'
import { type Comparison, differencesOf, type OwnMovement } from './compare.ts'

/** Lines of the table: more is what the JSON is for. */
const ROWS_MAX = 200

const NOTHING = '-'

/** For people: how many of each, and then each difference in a line. */
export function renderTable(comparison: Comparison): string {
  const counts = Object.entries(countsOf(comparison)).map(([name, count]) => [name, `${count}`])
  const differences = differencesOf(comparison)
  const rows = differences.slice(0, ROWS_MAX).map(({ difference, ours, theirs }) => {
    const id = ours?.id ?? theirs?.reference ?? NOTHING
    const gatewayId = theirs?.gateway_id ?? ours?.gateway_id ?? NOTHING
    return [difference, (ours ?? theirs)!.kind, id, gatewayId, movedOf(ours), movedOf(theirs)]
  })
  const head = ['difference', 'kind', 'ours', 'theirs', 'moved here', 'moved there']
  const more = differences.length > ROWS_MAX ? [`and ${differences.length - ROWS_MAX} more`] : []
  return [align(counts), ...(rows.length > 0 ? ['', align([head, ...rows]), ...more] : [])].join('\n')
}

/** For machines. With what else is worth telling of it, such as whose books they are. */
export function renderJson(comparison: Comparison, about: object = {}): string {
  return JSON.stringify(
    { ...about, counts: countsOf(comparison), differences: differencesOf(comparison) },
    undefined,
    2,
  )
}

export interface Counts {
  readonly matched: number
  readonly missing_here: number
  readonly missing_there: number
  readonly amount_mismatch: number
  readonly aged_unknown: number
}

export function countsOf(comparison: Comparison): Counts {
  return {
    matched: comparison.matched,
    missing_here: comparison.missing_here.length,
    missing_there: comparison.missing_there.length,
    amount_mismatch: comparison.amount_mismatch.length,
    aged_unknown: comparison.aged_unknown.length,
  }
}

function movedOf(movement: OwnMovement | Movement | null): string {
  if (movement === null) return NOTHING
  const { moved, currency } = movement
  return moved === null ? 'unknown' : formatMoney({ amount: moved, currency })
}

function align(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]!.length)))
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
