import { describe, expect, it } from 'vitest'
import { METRICS, measure, prometheusName } from './metrics.ts'

const OF_THE_TRADE = [
  'reserve.created',
  'reserve.replay',
  'reserve.in_progress',
  'reserve.key_misuse',
  'reserve.failed_retry',
  'reserve.unknown',
  'store.error',
  'zombie_key',
  'ttl_pruned',
  'reconcile.scheduled',
  'reconcile.resolved',
  'reconcile.failed',
]

describe('the table of metrics', () => {
  it('has the names that the trade knows', () => {
    const names = Object.values(METRICS).map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(OF_THE_TRADE.map((name) => `api.idempotency.${name}.count`)))
    expect(new Set(names).size).toBe(names.length)
  })

  it('has names and labels that Prometheus takes, each name once', () => {
    const names = Object.values(METRICS).map(prometheusName)
    expect(names.filter((name) => !/^[a-z_]+$/.test(name))).toEqual([])
    expect(new Set(names).size).toBe(names.length)
    expect(prometheusName(METRICS.reserve_created)).toBe('api_idempotency_reserve_created_total')
    expect(prometheusName(METRICS.call_duration)).toBe('api_idempotency_call_duration_seconds')
    expect(prometheusName(METRICS.stuck_records)).toBe('api_idempotency_stuck_records')
  })

  it('has no label that has as many values as there are customers or requests', () => {
    const labels = new Set(Object.values(METRICS).flatMap(({ labels }) => labels))
    expect([...labels].sort()).toEqual([
      'code',
      'destination',
      'job',
      'kind',
      'operation',
      'outcome',
      'protection',
      'state',
      'step',
      'worker',
    ])
  })
})

describe('measurements', () => {
  const id = { account: 'acct_1', operation: 'cards.4242424242424242', key: 'k' }
  const failure = { code: 'c', message: 'm' }
  it.each([
    [{ signal: 'ttl_pruned', count: 5 } as const, 'ttl_pruned', 5],
    [
      { signal: 'worker_failed', worker: 'reaper', code: 'closed', reason: null, message: 'm' } as const,
      'worker_failed',
      1,
    ],
    [{ signal: 'reconcile_scheduled', id, failure } as const, 'reconcile_scheduled', 1],
    [{ signal: 'reconcile_failed', id, failure } as const, 'reconcile_failed', 1],
    [{ signal: 'unattended', id } as const, 'unattended', 1],
    [{ signal: 'reconcile_resolved', id, state: 'completed' } as const, 'reconcile_resolved', 1],
    [{ signal: 'herd', protection: 'handler', id, size: 9 } as const, 'herd_size', 9],
    [{ signal: 'outbox_delivered', destination: id.operation, count: 3 } as const, 'outbox_delivered', 3],
    [
      { signal: 'outbox_failed', destination: id.operation, kind: 'held', failure, event: null } as const,
      'outbox_failed',
      1,
    ],
  ])('have the labels of their metric, masked: %j', (signal, metric, value) => {
    const [measured, ...more] = measure(signal)
    expect(more).toEqual([])
    expect(measured).toMatchObject({ metric, value })
    expect(Object.keys(measured!.labels).sort()).toEqual([...METRICS[measured!.metric].labels].sort())
    expect(JSON.stringify(measured)).not.toContain('4242')
  })

  it('of lag and of jobs have the labels of their metrics', () => {
    const lag = { signal: 'outbox_lag', destination: 'd', count: 4, oldestAgeMs: 1_500, parked: 2 } as const
    expect(measure(lag).map(({ metric, value }) => [metric, value])).toEqual([
      ['outbox_undelivered', 4],
      ['outbox_oldest_age', 1.5],
      ['outbox_parked', 2],
    ])
    const job = { job: 'j', account: 'a', jobId: 'job_1', attempts: 1, failure: null }
    const ended = { signal: 'job_ended', ...job, outcome: 'done', durationMs: 500 } as const
    expect(measure(ended).map(({ metric, value }) => [metric, value])).toEqual([
      ['job_ended', 1],
      ['job_duration', 0.5],
    ])
    const webhook = {
      account: 'a',
      endpoint: 'we_1',
      message: 'evt_1',
      type: 't',
      attempts: 1,
      status: 200,
      failure: null,
    }
    const sent = { signal: 'webhook_attempted', ...webhook, outcome: 'delivered', durationMs: 250 } as const
    expect(measure(sent).map(({ metric, value }) => [metric, value])).toEqual([
      ['webhook_attempted', 1],
      ['webhook_duration', 0.25],
    ])
    const gone = { signal: 'webhook_disabled', account: 'a', endpoint: 'we_1' } as const
    const id = { account: 'a', operation: 'o', key: 'k' }
    const refused = { signal: 'not_admitted', protection: 'handler', id, code: 'rate_limited' } as const
    expect(measure(refused)).toEqual([
      { metric: 'not_admitted', value: 1, labels: { operation: 'o', code: 'rate_limited' } },
    ])
    const all = [lag, ended, sent, gone, refused].flatMap((signal) => measure(signal))
    for (const { metric, labels } of all) {
      expect(Object.keys(labels).sort()).toEqual([...METRICS[metric].labels].sort())
    }
  })
})
