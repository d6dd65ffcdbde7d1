/**
 * Every metric in one table, and how a signal becomes measurements. What Prometheus and OpenTelemetry are given is
 * made from here, and docs/guides/observability.md holds the same rows.
 *
 * No label is an account or a key: there are as many of them as there are customers and requests, and each new value
 * of a label is a new time series for ever.
 */
import { showText } from './fields.ts'
import type { Signal } from './signals.ts'

export interface Metric {
  /** As OpenTelemetry names it. */
  readonly name: string
  /** `sampled`: read when it is asked for, by the code that has the number. */
  readonly kind: 'counter' | 'up_down' | 'gauge' | 'histogram' | 'sampled'
  readonly unit: '1' | 's'
  readonly labels: readonly string[]
  readonly help: string
  readonly buckets?: readonly number[]
}

/** From a replay out of memory to the longest that a call may take. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]
const CALLERS = [2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000]

const OF_CALL = ['operation', 'protection']

const TABLE = {
  reserve_created: counter('reserve.created', OF_CALL, 'Calls whose key was new.'),
  reserve_replay: counter('reserve.replay', OF_CALL, 'Calls that got the reply of an earlier one.'),
  reserve_in_progress: counter('reserve.in_progress', OF_CALL, 'Calls that met another one at work.'),
  reserve_key_misuse: counter('reserve.key_misuse', OF_CALL, 'Calls whose key belongs to another request.'),
  reserve_failed_retry: counter(
    'reserve.failed_retry',
    OF_CALL,
    'Calls that ran what had not completed before.',
  ),
  reserve_unknown: counter('reserve.unknown', OF_CALL, 'Calls that met a record whose outcome is not known.'),
  reserve_parked: counter('reserve.parked', OF_CALL, 'Calls that met a record that waits for an operator.'),
  store_error: counter('store.error', ['step', 'code'], 'Errors of the store, retried ones included.'),
  zombie_key: counter('zombie_key', OF_CALL, 'Records found in progress with their lease run out.'),
  tx_unused: counter('tx_unused', OF_CALL, 'Transactions that ended without a statement on their tx.'),
  tx_error_ignored: counter(
    'tx_error_ignored',
    OF_CALL,
    'Transactions whose function went on after a statement of it had failed.',
  ),
  lease_lost: counter('lease_lost', OF_CALL, 'Owners that found their record in other hands.'),
  handler_failed: counter(
    'handler.failed',
    OF_CALL,
    'Handlers that threw or replied with 5xx: whether they took effect is not known.',
  ),
  operation_failed: counter(
    'operation.failed',
    OF_CALL,
    'Calls of operations that stopped before their end: the same request may run again.',
  ),
  ttl_pruned: counter('ttl_pruned', [], 'Records removed after their retention.'),
  mistake: counter('mistake', ['code'], 'Requests that met a mistake of the service itself.'),
  reconcile_scheduled: counter('reconcile.scheduled', ['operation'], 'Records that became unknown.'),
  reconcile_resolved: counter(
    'reconcile.resolved',
    ['operation', 'state'],
    'Unknown or abandoned records that were settled.',
  ),
  reconcile_failed: counter('reconcile.failed', ['operation'], 'Tries to settle an unknown record in vain.'),
  parked: counter('parked', ['operation'], 'Records that were parked: an operator has to decide.'),
  unattended: counter(
    'unattended',
    ['operation'],
    'Looks that found an operation which waits for a worker while none takes it.',
  ),
  void_call_happened: counter(
    'void_call.happened',
    ['operation'],
    'Calls that happened though an operator has declared them void.',
  ),
  worker_failed: counter('worker.failed', ['worker', 'code'], 'Batches of workers that failed.'),
  call_duration: {
    name: 'api.idempotency.call.duration',
    kind: 'histogram',
    unit: 's',
    labels: ['protection', 'outcome'],
    help: 'How long protected calls took, work included.',
    buckets: SECONDS,
  },
  herd_size: {
    name: 'api.idempotency.herd.size',
    kind: 'histogram',
    unit: '1',
    labels: OF_CALL,
    help: 'Callers that shared one flight, for every flight with more than one.',
    buckets: CALLERS,
  },
  calls_in_flight: {
    name: 'api.idempotency.calls.in_flight',
    kind: 'up_down',
    unit: '1',
    labels: ['protection'],
    help: 'Protected calls under way in this process.',
  },
  retry_rate: {
    name: 'api.idempotency.retry.rate',
    kind: 'sampled',
    unit: '1',
    labels: [],
    help: 'Share of the calls of the last minute that were not first attempts, in this process.',
  },
  stuck_records: {
    name: 'api.idempotency.stuck.records',
    kind: 'gauge',
    unit: '1',
    labels: ['state'],
    help: 'Unfinished records older than the threshold, in the whole store.',
  },
  stuck_oldest_age: {
    name: 'api.idempotency.stuck.oldest_age',
    kind: 'gauge',
    unit: 's',
    labels: ['state'],
    help: 'Age of the oldest stuck record, in the whole store; 0 when there is none.',
  },
  outbox_delivered: counter('outbox.delivered', ['destination'], 'Events that were delivered.'),
  outbox_failed: counter(
    'outbox.failed',
    ['destination', 'kind'],
    'Deliveries in vain: of a destination that is away or gone, or of an event that was held or parked.',
  ),
  outbox_undelivered: {
    name: 'api.idempotency.outbox.undelivered',
    kind: 'gauge',
    unit: '1',
    labels: ['destination'],
    help: 'Events that are not delivered yet, in the whole store.',
  },
  outbox_oldest_age: {
    name: 'api.idempotency.outbox.oldest_age',
    kind: 'gauge',
    unit: 's',
    labels: ['destination'],
    help: 'Age of the oldest event that is not delivered, in the whole store; 0 when there is none.',
  },
  outbox_parked: {
    name: 'api.idempotency.outbox.parked',
    kind: 'gauge',
    unit: '1',
    labels: ['destination'],
    help: 'Events that wait for an operator, in the whole store.',
  },
  job_ended: counter('job.ended', ['job', 'outcome'], 'Jobs that were run, by how it ended.'),
  job_duration: {
    name: 'api.idempotency.job.duration',
    kind: 'histogram',
    unit: 's',
    labels: ['job', 'outcome'],
    help: 'How long jobs took.',
    buckets: SECONDS,
  },
  webhook_attempted: counter(
    'webhook.attempted',
    ['outcome'],
    'Attempts to deliver webhooks, by how it ended.',
  ),
  webhook_duration: {
    name: 'api.idempotency.webhook.duration',
    kind: 'histogram',
    unit: 's',
    labels: ['outcome'],
    help: 'How long attempts to deliver webhooks took.',
    buckets: SECONDS,
  },
  webhook_disabled: counter('webhook.disabled', [], 'Endpoints of webhooks that said that they are gone.'),
  not_admitted: counter(
    'not_admitted',
    ['operation', 'code'],
    'Requests that were not admitted, by the code of the refusal.',
  ),
} as const satisfies Record<string, Metric>

export type MetricKey = keyof typeof TABLE

export const METRICS: Readonly<Record<MetricKey, Metric>> = TABLE

export type Labels = Readonly<Record<string, string>>

/** Added, set or observed, as the kind of the metric says. */
export interface Measurement {
  readonly metric: MetricKey
  readonly value: number
  readonly labels: Labels
}

/** As Prometheus names a metric: underscores, `_total` for what only rises, the unit last. */
export function prometheusName({ name, kind, unit }: Metric): string {
  const plain = name.replace(/\.count$/, '').replaceAll('.', '_')
  if (kind === 'counter') return `${plain}_total`
  return unit === 's' ? `${plain}_seconds` : plain
}

/** What a signal says in numbers. */
export function measure(signal: Signal): readonly Measurement[] {
  switch (signal.signal) {
    case 'call_started':
      return [{ metric: 'calls_in_flight', value: 1, labels: { protection: signal.protection } }]
    case 'call_ended': {
      const { protection, outcome, durationMs } = signal
      return [
        { metric: 'calls_in_flight', value: -1, labels: { protection } },
        { metric: 'call_duration', value: durationMs / 1_000, labels: { protection, outcome } },
      ]
    }
    case 'reserved':
      return [{ metric: `reserve_${signal.kind}`, value: 1, labels: labelsOf(signal) }]
    case 'key_misuse':
      return [{ metric: 'reserve_key_misuse', value: 1, labels: labelsOf(signal) }]
    case 'zombie_key':
    case 'tx_unused':
    case 'tx_error_ignored':
    case 'lease_lost':
    case 'handler_failed':
    case 'operation_failed':
      return [{ metric: signal.signal, value: 1, labels: labelsOf(signal) }]
    case 'herd':
      return [{ metric: 'herd_size', value: signal.size, labels: labelsOf(signal) }]
    case 'store_error':
      return [{ metric: 'store_error', value: 1, labels: { step: signal.step, code: signal.code } }]
    // The errors that they are made from are counted.
    case 'store_away':
    case 'store_back':
    // It is told once, by a process that ends.
    case 'cut_off':
      return []
    case 'mistake':
      return [{ metric: 'mistake', value: 1, labels: { code: signal.code } }]
    case 'reconcile_scheduled':
    case 'reconcile_failed':
    case 'parked':
    case 'unattended':
    case 'void_call_happened':
      return [{ metric: signal.signal, value: 1, labels: { operation: showText(signal.id.operation) } }]
    case 'reconcile_resolved': {
      const labels = { operation: showText(signal.id.operation), state: signal.state }
      return [{ metric: signal.signal, value: 1, labels }]
    }
    case 'ttl_pruned':
      return [{ metric: 'ttl_pruned', value: signal.count, labels: {} }]
    case 'worker_failed':
      return [{ metric: 'worker_failed', value: 1, labels: { worker: signal.worker, code: signal.code } }]
    case 'stuck':
      return Object.entries(signal.stuck).flatMap(([state, { count, oldestAgeMs }]) => [
        { metric: 'stuck_records', value: count, labels: { state } },
        { metric: 'stuck_oldest_age', value: oldestAgeMs / 1_000, labels: { state } },
      ])
    case 'outbox_lag': {
      const labels = { destination: showText(signal.destination) }
      return [
        { metric: 'outbox_undelivered', value: signal.count, labels },
        { metric: 'outbox_oldest_age', value: signal.oldestAgeMs / 1_000, labels },
        { metric: 'outbox_parked', value: signal.parked, labels },
      ]
    }
    case 'outbox_delivered': {
      const labels = { destination: showText(signal.destination) }
      return [{ metric: 'outbox_delivered', value: signal.count, labels }]
    }
    case 'outbox_failed': {
      const labels = { destination: showText(signal.destination), kind: signal.kind }
      return [{ metric: 'outbox_failed', value: 1, labels }]
    }
    case 'job_ended': {
      const labels = { job: showText(signal.job), outcome: signal.outcome }
      return [
        { metric: 'job_ended', value: 1, labels },
        { metric: 'job_duration', value: signal.durationMs / 1_000, labels },
      ]
    }
    case 'webhook_attempted': {
      const labels = { outcome: signal.outcome }
      return [
        { metric: 'webhook_attempted', value: 1, labels },
        { metric: 'webhook_duration', value: signal.durationMs / 1_000, labels },
      ]
    }
    case 'webhook_disabled':
      return [{ metric: 'webhook_disabled', value: 1, labels: {} }]
    case 'not_admitted': {
      const labels = { operation: showText(signal.id.operation), code: signal.code }
      return [{ metric: 'not_admitted', value: 1, labels }]
    }
    default:
      return signal satisfies never
  }
}

/** Counters that alarms are raised on, and that have no other label than the operation. */
const OF_OPERATION = (Object.keys(METRICS) as MetricKey[]).filter((key) => {
  const { kind, labels } = METRICS[key]
  return kind === 'counter' && labels.length === 1 && labels[0] === 'operation'
})

/**
 * Gives the counters of an operation their zero at its first signal: `increase()` sees no first event of a series that was not there
 * before it. `bound` limits how many operations there can be.
 */
export function beginsAtZero(
  bound: (labels: Labels) => Labels,
  take: (metric: MetricKey, value: number, labels: Labels) => void,
): (signal: Signal) => void {
  const begun = new Set<string>()
  return (signal) => {
    if (!('id' in signal) || signal.id === null) return
    const labels = bound({ operation: showText(signal.id.operation) })
    if (begun.has(labels.operation!)) return
    begun.add(labels.operation!)
    for (const metric of OF_OPERATION) take(metric, 0, labels)
  }
}

function labelsOf(signal: Extract<Signal, { readonly protection: string }>): Labels {
  return { operation: showText(signal.id.operation), protection: signal.protection }
}

function counter(name: string, labels: readonly string[], help: string) {
  return { name: `api.idempotency.${name}.count`, kind: 'counter', unit: '1', labels, help } as const
}
