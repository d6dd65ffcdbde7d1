/** A server that goes down and comes back, with real processes: what clients send is bounded by their budget. */
import { expect, it } from 'vitest'
import { drawChart, ratesOf } from '../../bench/recovery/chart.ts'
import { type OutageOptions, runOutage } from '../../bench/recovery/outage.ts'

const RETRY_BUDGET = { burst: 5, perSecond: 1, ratio: 0.2 }
const OUTAGE: Omit<OutageOptions, 'client'> = {
  callers: 60,
  clients: 2,
  everyMs: 300,
  beforeMs: 300,
  downMs: 900,
  afterMs: 600,
}
const QUICK = { maxRetries: 20, initialDelayMs: 40, maxDelayMs: 160, circuitBreaker: false } as const

it('retries stay within the budget, and calls are answered again when the server is back', async () => {
  const [bounded, free] = await Promise.all([
    runOutage({ ...OUTAGE, client: { ...QUICK, retryBudget: RETRY_BUDGET } }),
    runOutage({ ...OUTAGE, client: { ...QUICK, retryBudget: false } }),
  ])
  const { burst, perSecond, ratio } = RETRY_BUDGET
  const boundOf = ({ begun, attemptsAt }: typeof bounded) =>
    begun * (1 + ratio) +
    OUTAGE.clients * (burst + (perSecond * (attemptsAt.at(-1)! + OUTAGE.beforeMs)) / 1_000)
  expect(bounded.attemptsAt.length).toBeLessThanOrEqual(boundOf(bounded))
  expect(bounded.failedAt.length).toBeGreaterThan(0)
  // Without it the same outage is more than that, so the bound says something.
  expect(free.attemptsAt.length).toBeGreaterThan(boundOf(free))
  // The server came back: calls that begin then are answered.
  expect(bounded.answeredAt.at(-1)).toBeGreaterThan(OUTAGE.downMs)
})

it('the picture has a line for each way, and its figures', () => {
  expect(ratesOf([-500, 10, 20, 1_500], -1_000, 2_000)).toEqual([1, 2, 1])
  const curves = [{ name: 'one', style: 'a', timesMs: [10, 20] } as const]
  const svg = drawChart('Title', { fromMs: -1_000, toMs: 2_000, downMs: 1_000, curves })
  expect(svg).toMatch(/<title>Title<\/title>[\s\S]*<path class="a" d="M[\d.,L]+"\/>/)
})
