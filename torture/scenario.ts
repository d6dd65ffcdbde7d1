import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { random } from 'onlyonce/testing'
import { gather, livesOf, placesIn } from './gather.ts'
import type { Attempt, History, Violation } from './judge/history.ts'
import { judge } from './judge/judge.ts'
import { runPhones } from './phones.ts'
import type { Scenario } from './scenarios.ts'
import { openSite, type Site } from './site.ts'
import { strikeUntil } from './strikes.ts'

export interface Summary {
  readonly name: string
  readonly seed: number
  readonly requests: number
  readonly charges: number
  readonly faults: number
  readonly violations: readonly Violation[]
  readonly parked: number
  readonly quietS: number | null
  readonly history: History
}

interface RunOptions {
  readonly seconds: number
  readonly seed: number
  readonly postgres: 'embedded' | 'debian'
  readonly say: (line: string) => void
}

const DOCS = fileURLToPath(new URL('../docs', import.meta.url))
/** Leases, grace, the whole schedule of looks at what is in doubt, and room for a busy machine. */
const QUIET_LIMIT_S = 150
const SAMPLE_EVERY_MS = 1_000
const TELL_EVERY_MS = 10_000

/** Runs one scenario on a site of its own, and judges it. */
export async function runScenario(scenario: Scenario, options: RunOptions): Promise<Summary> {
  const { seconds, seed, say } = options
  const source = random(seed)
  say(`${scenario.name} (seed ${seed}): ${scenario.about}`)
  const site = await openSite({
    random: source.fork(0),
    postgres: options.postgres,
    ...scenario.site,
    withClocks: scenario.faults.some((name) => name.startsWith('clock_')),
  })
  const interrupted = closeWhenInterrupted(site)
  let history: History
  let faults: number
  try {
    const began = performance.now()
    const over = () => performance.now() - began > seconds * 1_000
    const log: Attempt[] = []
    const watching = watch(site, () => log.length, say)
    const phones = runPhones({
      site,
      random: source.fork(1),
      name: scenario.name,
      count: scenario.phones,
      mix: scenario.mix,
      until: over,
      log,
    })
    faults = await strikeUntil(over, { site, scenario, source: source.fork(2), say })
    const healedAt = performance.now()
    await phones
    const quietS = await untilQuiet(site, healedAt)
    watching.stop()
    const gathered = await gather(site, {
      scenario: scenario.name,
      seed,
      log,
      quietS,
      quietLimitS: QUIET_LIMIT_S,
      docs: DOCS,
    })
    await Promise.all([...site.servers, ...site.workers, site.processor].map((program) => program.close()))
    const processes = livesOf(site)
    const canarySeenIn = [
      ...gathered.canarySeenIn,
      ...processes.flatMap(({ name, output }) => placesIn(`the log of ${name}`, [output])),
    ]
    history = { ...gathered, canarySeenIn, processes }
  } finally {
    interrupted.forget()
    await site.close()
  }
  const charges = history.journal.filter(({ kind }) => kind === 'authorization' || kind === 'capture').length
  return {
    name: scenario.name,
    seed,
    requests: history.attempts.length,
    charges,
    faults,
    violations: judge(history),
    parked: history.database.records.filter(({ state }) => state === 'parked').length,
    quietS: history.quietS,
    history,
  }
}

/** Servers, processes and mounts outlive a driver that is interrupted, unless it ends them. */
function closeWhenInterrupted(site: Site): { forget(): void } {
  const close = () => void site.close().finally(() => process.exit(130))
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.once(signal, close)
  return {
    forget() {
      for (const signal of signals) process.off(signal, close)
    },
  }
}

/** Waits until everything is terminal or parked and all events are out. How long that took, or null. */
async function untilQuiet(site: Site, healedAt: number): Promise<number | null> {
  await Promise.all([...site.servers, ...site.workers, site.processor].map((program) => program.start()))
  for (;;) {
    const tookS = (performance.now() - healedAt) / 1_000
    const open = await site.database.query(OPEN).then(
      ({ rows }) => Number((rows[0] as { count: string }).count),
      () => Number.NaN,
    )
    if (open === 0) return tookS
    if (tookS > QUIET_LIMIT_S) return null
    await sleep(250)
  }
}

const OPEN = `SELECT (SELECT count(*) FROM onlyonce.records WHERE state IN ('in_progress', 'unknown'))
  + (SELECT count(*) FROM onlyonce.events AS event WHERE NOT EXISTS
      (SELECT FROM onlyonce.webhook_messages AS told WHERE told.account = event.account AND told.id = event.id))
  + (SELECT count(*) FROM onlyonce.webhook_deliveries WHERE due_at < now() + interval '15 seconds') AS count`

function watch(site: Site, requests: () => number, say: (line: string) => void): { stop(): void } {
  const samples = setInterval(() => {
    for (const program of [...site.servers, ...site.workers, site.processor]) program.sample()
  }, SAMPLE_EVERY_MS)
  const tells = setInterval(
    () => say(`  ${requests()} requests, ${site.sink.deliveries.length} webhooks`),
    TELL_EVERY_MS,
  )
  return {
    stop() {
      clearInterval(samples)
      clearInterval(tells)
    },
  }
}
