import { alternate, type Side } from './measure.ts'

export interface Measured {
  readonly rates: Record<string, number[]>
  /** In milliseconds, of each round. */
  readonly p99: Record<string, number[]>
}

/** Rates, and with them the latency that one request in a hundred exceeds. */
export async function measureLatencies(
  sides: Readonly<Record<string, Side>>,
  load: Parameters<typeof alternate>[1],
): Promise<Measured> {
  const rounds: Record<string, number[][]> = Object.fromEntries(Object.keys(sides).map((name) => [name, []]))
  const timed = Object.entries(sides).map(([name, side]) => {
    const timedSide: Side = async () => {
      const startMs = performance.now()
      await side()
      rounds[name]!.at(-1)!.push(performance.now() - startMs)
    }
    return [name, timedSide]
  })
  const rates = await alternate(Object.fromEntries(timed), {
    ...load,
    beforeEach: async (name) => {
      rounds[name]!.push([])
    },
  })
  // The first round warms up.
  const p99 = Object.entries(rounds).map(([name, all]) => [name, all.slice(1).map(p99Of)])
  return { rates, p99: Object.fromEntries(p99) }
}

function p99Of(latenciesMs: number[]): number {
  const sorted = Float64Array.from(latenciesMs).sort()
  return sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN
}
