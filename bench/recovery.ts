/**
 * npm run bench:recovery
 *
 * A thousand callers, and a server that is down for ten seconds: what they send meanwhile and after it. Real processes, sockets and time. Writes
 * docs/images/recovery.svg and prints the rows of the table in docs/guides/clients.md.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import type { ClientOptions } from '../src/client/index.ts'
import { BIN_MS, type Curve, drawChart, ratesOf } from './recovery/chart.ts'
import { type Outage, type OutageOptions, runOutage } from './recovery/outage.ts'

const IMAGES = fileURLToPath(new URL('../docs/images/', import.meta.url))
const OUTAGE = {
  callers: 1_000,
  clients: 10,
  everyMs: 10_000,
  beforeMs: 10_000,
  downMs: 10_000,
  afterMs: 15_000,
}
/** Enough retries to outlast the outage: what is compared is what holds them back. */
const PATIENT: ClientOptions = { maxRetries: 10, deadlineMs: 60_000 }
const NO = { retryBudget: false, circuitBreaker: false } as const

const WAYS: readonly (Pick<Curve, 'name' | 'style'> & { readonly client: ClientOptions })[] = [
  { name: 'without a budget', style: 'a', client: { ...PATIENT, ...NO } },
  { name: 'with the retry budget', style: 'b', client: { ...PATIENT, circuitBreaker: false } },
  { name: 'with budget and circuit breaker', style: 'c', client: PATIENT },
]

const usual = (OUTAGE.callers * 1_000) / OUTAGE.everyMs
const seen: Outage[] = []
for (const { name, client } of WAYS) {
  const options: OutageOptions = { ...OUTAGE, client }
  const late = monitorEventLoopDelay({ resolution: 10 })
  late.enable()
  const outage = await runOutage(options)
  late.disable()
  seen.push(outage)
  console.log(rowOf(name, outage))
  // A machine that is busy with other things sends what was due in one moment. Such a run says nothing.
  console.error(`The event loop was late by ${Math.round(late.max / 1e6)} ms at most.`)
}
const curves = WAYS.map(({ name, style }, i) => ({ name, style, timesMs: seen[i]!.attemptsAt }))
const { beforeMs, downMs, afterMs } = OUTAGE
mkdirSync(IMAGES, { recursive: true })
const title = 'A thousand callers, and a server that is down for ten seconds'
writeFileSync(
  `${IMAGES}recovery.svg`,
  drawChart(title, { fromMs: -beforeMs, toMs: downMs + afterMs, downMs, curves }),
)

function rowOf(name: string, { attemptsAt, answeredAt, failedAt, begun }: Outage): string {
  const { downMs, afterMs } = OUTAGE
  const meanwhile = attemptsAt.filter((at) => at >= 0 && at < downMs).length
  const rates = ratesOf(attemptsAt, downMs, downMs + afterMs)
  const peak = Math.max(...rates)
  const last = rates.findLastIndex((rate) => rate > usual * 1.25)
  const failed = failedAt.length
  const lateFailed = failedAt.filter((at) => at > downMs).length
  const back = ((last + 1) * BIN_MS) / 1_000
  return `| ${name} | ${meanwhile} | ${peak} | ${back} s | ${begun} | ${answeredAt.length} | ${failed} | ${lateFailed} |`
}
