import { Registry } from 'prom-client'
import { beforeAll, expect, test } from 'vitest'
import type { Signal } from '../../src/entries/observe.ts'
import { notExecuted } from '../../src/index.ts'
import { METRICS, prometheusName } from '../../src/observe/metrics.ts'
import { prometheus } from '../../src/observe/prometheus.ts'
import { catchError, makeCall, makeGate, openShop, type Shop, waitUntil } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

/** The lines of one metric, without those of its buckets. */
async function linesOf(registry: Registry, name: string): Promise<string[]> {
  const text = await registry.getSingleMetricAsString(`api_idempotency_${name}`)
  return text.split('\n').filter((line) => !line.startsWith('#') && !line.includes('_bucket') && line !== '')
}

test('the text of the registry after known calls', async () => {
  const registry = new Registry()
  const once = shop.open({ observe: prometheus({ registry }), stuckCheckEveryMs: 10 })
  const call = makeCall()
  const labels = '{operation="transfers.create",protection="transaction"}'
  for (const _ of [1, 2, 3]) await once.transaction(call, async () => 1)
  await once.transaction({ ...call, input: 'other' }, async () => 1)
  expect(await linesOf(registry, 'reserve_created_total')).toEqual([
    `api_idempotency_reserve_created_total${labels} 1`,
  ])
  expect(await linesOf(registry, 'reserve_replay_total')).toEqual([
    `api_idempotency_reserve_replay_total${labels} 2`,
  ])
  expect(await linesOf(registry, 'reserve_key_misuse_total')).toEqual([
    `api_idempotency_reserve_key_misuse_total${labels} 1`,
  ])
  expect(await linesOf(registry, 'retry_rate')).toEqual([`api_idempotency_retry_rate ${2 / 3}`])
  expect(await linesOf(registry, 'call_duration_seconds')).toEqual(
    expect.arrayContaining([
      'api_idempotency_call_duration_seconds_count{protection="transaction",outcome="replayed"} 2',
    ]),
  )

  const handler = makeCall({ operation: 'orders.create' })
  await catchError(once.execute(handler, () => Promise.reject(notExecuted())))
  const gate = makeGate()
  const all = [1, 2, 3].map(() => once.execute(handler, () => gate.pass()))
  await gate.reached
  expect(await linesOf(registry, 'calls_in_flight')).toEqual([
    'api_idempotency_calls_in_flight{protection="transaction"} 0',
    'api_idempotency_calls_in_flight{protection="handler"} 3',
  ])
  gate.open()
  await Promise.all(all)
  expect(await linesOf(registry, 'reserve_failed_retry_total')).toEqual([
    'api_idempotency_reserve_failed_retry_total{operation="orders.create",protection="handler"} 1',
  ])
  expect(await linesOf(registry, 'herd_size')).toEqual([
    'api_idempotency_herd_size_sum{operation="orders.create",protection="handler"} 3',
    'api_idempotency_herd_size_count{operation="orders.create",protection="handler"} 1',
  ])
  await waitUntil(
    'stuck records were counted',
    async () => (await linesOf(registry, 'stuck_records')).length === 3,
  )
  expect(await linesOf(registry, 'stuck_oldest_age_seconds')).toContain(
    'api_idempotency_stuck_oldest_age_seconds{state="in_progress"} 0',
  )
})

test('every metric of the table is there, also those that only workers move', async () => {
  const registry = new Registry()
  const observer = prometheus({ registry })
  const text = await registry.metrics()
  for (const metric of Object.values(METRICS)) {
    expect(text).toContain(`# HELP ${prometheusName(metric)} ${metric.help}\n`)
  }
  const id = { account: 'acct_1', operation: 'o', key: 'k' }
  const signals: readonly Signal[] = [
    { signal: 'ttl_pruned', count: 7 },
    { signal: 'reconcile_resolved', id, state: 'completed' },
    { signal: 'reconcile_failed', id, failure: { code: 'c', message: 'm' } },
  ]
  for (const signal of signals) observer.signal?.(signal)
  expect(await linesOf(registry, 'ttl_pruned_total')).toEqual(['api_idempotency_ttl_pruned_total 7'])
  expect(await linesOf(registry, 'reconcile_resolved_total')).toEqual([
    'api_idempotency_reconcile_resolved_total{operation="o",state="completed"} 1',
  ])
  expect(await linesOf(registry, 'reconcile_failed_total')).toEqual([
    'api_idempotency_reconcile_failed_total{operation="o"} 1',
  ])
})

test('the counters of alarms are there, at zero, since the first call of their operation', async () => {
  const registry = new Registry()
  const once = shop.open({ observe: prometheus({ registry }) })
  await once.transaction(makeCall(), async () => 1)
  expect(await linesOf(registry, 'parked_total')).toEqual([
    'api_idempotency_parked_total{operation="transfers.create"} 0',
  ])
})
