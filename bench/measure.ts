/** One side of a comparison: what one caller does once. */
export type Side = () => Promise<unknown>

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

export interface Load {
  readonly callers: number
  readonly roundMs: number
}

/** Calls a second, with so many callers that each start again as soon as they are done. */
export async function throughput(side: Side, { callers, roundMs }: Load): Promise<number> {
  let done = 0
  const startMs = performance.now()
  const endMs = startMs + roundMs
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() < endMs) {
        await side()
        done += 1
      }
    }),
  )
  return (done / (performance.now() - startMs)) * 1_000
}

export interface Sample {
  readonly name: string
  readonly rates: readonly number[]
}

/**
 * Measures several sides in rounds, one after the other within each round, so that whatever else the machine
 * does hits all of them. The first round warms up and is dropped. The order turns round by round.
 */
export async function alternate(
  sides: Readonly<Record<string, Side>>,
  load: Load & { readonly rounds: number; readonly beforeEach?: (name: string) => Promise<void> },
): Promise<Record<string, number[]>> {
  const rates: Record<string, number[]> = Object.fromEntries(Object.keys(sides).map((name) => [name, []]))
  for (let round = 0; round <= load.rounds; round += 1) {
    const order = Object.entries(sides)
    if (round % 2 === 1) order.reverse()
    for (const [name, side] of order) {
      await load.beforeEach?.(name)
      const rate = await throughput(side, load)
      if (round > 0) rates[name]!.push(rate)
    }
  }
  return rates
}

/** The ratio of two sides, round by round: the noise of a round is in both. */
export function ratioOf(rates: Record<string, readonly number[]>, a: string, b: string): Spread {
  return spreadOf(rates[a]!.map((rate, round) => rate / rates[b]![round]!))
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((x, y) => x - y)
  const middle = Math.floor(sorted.length / 2)
  const median = sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
  return { median, min: sorted[0]!, max: sorted.at(-1)! }
}
