import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from 'onlyonce/testing'
import { type Aim, FAULTS, type TortureFault } from './faults.ts'
import { NotHealed } from './heal.ts'
import type { Scenario } from './scenarios.ts'
import type { Site } from './site.ts'

/** How often another fault is drawn in place of one whose victim is hurt already. */
const DRAWS_MAX = 8

interface Strikes {
  readonly site: Site
  readonly scenario: Scenario
  readonly source: Random
  readonly say: (line: string) => void
}

/**
 * Strikes until the time is over, and tells how many faults struck and were healed. The n-th fault of a lane comes from the
 * seed alone, whatever happened before; only where its victim is hurt already another one is drawn.
 */
export async function strikeUntil(over: () => boolean, strikes: Strikes): Promise<number> {
  const faults = FAULTS.filter(({ name }) => strikes.scenario.faults.includes(name))
  const busy = new Set<string>()
  const lanes = Array.from({ length: strikes.scenario.lanes }, (_, n) =>
    runLane(over, strikes, { faults, busy, source: strikes.source.fork(n) }),
  )
  const struck = await Promise.all(lanes)
  return struck.reduce((sum, count) => sum + count, 0)
}

interface LaneOptions {
  readonly faults: readonly TortureFault[]
  /** What is hurt at present, by all lanes. */
  readonly busy: Set<string>
  readonly source: Random
}

async function runLane(
  over: () => boolean,
  { site, scenario, say }: Strikes,
  { faults, busy, source }: LaneOptions,
): Promise<number> {
  let struck = 0
  for (let n = 0; !over(); n += 1) {
    const random = source.fork(n)
    await sleep(random.integer(scenario.pauseMaxMs))
    const chosen = over() ? null : choose(faults, busy, (fault) => fault.aim(site, random), random)
    if (chosen === null) continue
    const { fault, aim } = chosen
    for (const thing of aim.things) busy.add(thing)
    try {
      await aim.strike()
      struck += 1
    } catch (error) {
      if (error instanceof NotHealed) throw error
      say(`  ${fault.name} did not strike: ${(error as Error).message}`)
    } finally {
      for (const thing of aim.things) busy.delete(thing)
    }
  }
  return struck
}

function choose(
  faults: readonly TortureFault[],
  busy: ReadonlySet<string>,
  aimed: (fault: TortureFault) => Aim,
  random: Random,
): { readonly fault: TortureFault; readonly aim: Aim } | null {
  for (let draws = 0; draws < DRAWS_MAX; draws += 1) {
    const fault = random.pick(faults)
    const aim = aimed(fault)
    if (!aim.things.some((thing) => busy.has(thing))) return { fault, aim }
  }
  return null
}
