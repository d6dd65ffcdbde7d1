import { Counter, Gauge, Histogram, type Registry, register } from 'prom-client'
import { OnlyonceError } from '../core/errors.ts'
import { refuseUnknown } from '../core/options.ts'
import { BoundedLabels } from './bounded-labels.ts'
import { beginsAtZero, type Labels, METRICS, type MetricKey, measure, prometheusName } from './metrics.ts'
import { RetryRate } from './retry-rate.ts'
import type { Observer } from './signals.ts'

export interface PrometheusOptions {
  /**
   * Where the metrics are registered; prom-client's own registry by default.
   *
   * @default the registry of prom-client itself
   */
  readonly registry?: Registry
}

type Take = (value: number, labels: Labels) => void

/**
 * Metrics for prom-client. Names and labels are in docs/guides/observability.md. A registry takes each name once: give one
 * observer to all front doors that share a registry.
 *
 * @example
 * const once = onlyonce({ store, secret, observe: prometheus({ registry }) })
 */
export function prometheus(options: PrometheusOptions = {}): Observer {
  refuseUnknown('prometheus()', options, { registry: true })
  const registry = options.registry ?? register
  refuseTaken(registry)
  const retryRate = new RetryRate()
  const bounded = new BoundedLabels()
  const takes = Object.fromEntries(
    Object.keys(METRICS).map((key) => [key, registerOne(key as MetricKey, registry, retryRate)]),
  ) as Record<MetricKey, Take>
  const begin = beginsAtZero(
    (labels) => bounded.of(labels),
    (metric, value, labels) => takes[metric](value, labels),
  )
  return {
    signal(signal) {
      retryRate.hear(signal)
      begin(signal)
      for (const { metric, value, labels } of measure(signal)) takes[metric](value, bounded.of(labels))
    },
  }
}

function refuseTaken(registry: Registry): void {
  const taken = Object.values(METRICS)
    .map(prometheusName)
    .find((name) => registry.getSingleMetric(name))
  if (taken === undefined) return
  throw new OnlyonceError('option_invalid', {
    detail: `prometheus(): the registry has a metric ${taken} already. Give one observer to every onlyonce() that shares a registry, or each a registry of its own.`,
  })
}

function registerOne(key: MetricKey, registry: Registry, retryRate: RetryRate): Take {
  const metric = METRICS[key]
  const { kind, help, labels } = metric
  const common = { name: prometheusName(metric), help, labelNames: [...labels], registers: [registry] }
  switch (kind) {
    case 'counter': {
      const counter = new Counter(common)
      return (value, of) => counter.inc(of, value)
    }
    case 'up_down': {
      const gauge = new Gauge(common)
      return (value, of) => gauge.inc(of, value)
    }
    case 'gauge': {
      const gauge = new Gauge(common)
      return (value, of) => gauge.set(of, value)
    }
    case 'histogram': {
      const histogram = new Histogram({ ...common, buckets: [...(metric.buckets ?? [])] })
      return (value, of) => histogram.observe(of, value)
    }
    case 'sampled': {
      const gauge: Gauge = new Gauge({ ...common, collect: () => gauge.set(retryRate.value) })
      return () => {}
    }
    default:
      return kind satisfies never
  }
}
