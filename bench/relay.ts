import { ratioOf, spreadOf } from './measure.ts'
import {
  BATCH,
  installPeers,
  openGraphileWorker,
  openJobs,
  openPgBoss,
  openRelay,
  type Queue,
} from './queues.ts'
import type { Report } from './report.ts'
import type { Bench } from './run.ts'

const PRODUCERS = 4
/** Items a round, for each millisecond that a round is meant to take. */
const ITEMS_A_MS = 10

/** How many items a second go through: put in and taken out at the same time, until all are out. */
export async function relayed({ url, rounds, roundMs }: Bench): Promise<Report> {
  installPeers()
  const queues = [
    await openRelay(url),
    await openJobs(url),
    await openPgBoss(url),
    await openGraphileWorker(url),
  ]
  const items = Math.max(1, Math.round((roundMs * ITEMS_A_MS) / BATCH)) * BATCH
  const rates: Record<string, number[]> = Object.fromEntries(queues.map(({ name }) => [name, []]))
  // The first round warms up and is dropped; the order turns round by round.
  for (let round = 0; round <= rounds; round += 1) {
    for (const queue of round % 2 === 1 ? [...queues].reverse() : queues) {
      await queue.empty()
      const rate = await throughput(queue, items)
      if (round > 0) rates[queue.name]!.push(rate)
    }
  }
  for (const queue of queues) await queue.close()
  const peers = ['pg_boss', 'graphile_worker']
  const ratios = ['relay', 'jobs'].flatMap((ours) =>
    peers.map((peer) => [`${ours}/${peer}`, ratioOf(rates, ours, peer)] as const),
  )
  return {
    suite: 'relay',
    rates: Object.fromEntries(Object.entries(rates).map(([name, values]) => [name, spreadOf(values)])),
    ratios: Object.fromEntries(ratios),
    aims: { 'relay/pg_boss': 2, 'relay/graphile_worker': 2 },
    commitsPerRequest: {},
    notes: [
      `${items} items a round in batches of ${BATCH}, ${PRODUCERS} producers, consumers in the same process, ${rounds} rounds.`,
      'relay: events, in order within aggregates of five, to a function. jobs: staged jobs. Peers: see bench/queues.ts.',
    ],
  }
}

async function throughput(queue: Queue, items: number): Promise<number> {
  let left = items
  let finish = () => {}
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  const stop = await queue.consume((count) => {
    left -= count
    if (left <= 0) finish()
  })
  const startMs = performance.now()
  let next = 0
  const producers = Array.from({ length: PRODUCERS }, async () => {
    while (next < items) {
      const first = next
      next += BATCH
      await queue.put(first)
    }
  })
  await Promise.all([...producers, finished])
  const tookMs = performance.now() - startMs
  await stop()
  return (items / tookMs) * 1_000
}
