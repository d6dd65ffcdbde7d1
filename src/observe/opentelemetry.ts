import {
  context,
  type Meter,
  metrics,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { refuseUnknown } from '../core/options.ts'
import { BoundedLabels } from './bounded-labels.ts'
import { digestKey, showText } from './fields.ts'
import { beginsAtZero, type Labels, METRICS, type MetricKey, measure } from './metrics.ts'
import { RetryRate } from './retry-rate.ts'
import type { CallEnded, CallTrace, Observer, TracedCall, TraceLink } from './signals.ts'
import { formatTraceParent, parseTraceParent } from './traceparent.ts'

export interface OpenTelemetryOptions {
  /**
   * Who makes the spans; that of the global provider by default.
   *
   * @default that of the global provider
   */
  readonly tracer?: Tracer
  /**
   * Who takes the measurements; that of the global provider by default.
   *
   * @default that of the global provider
   */
  readonly meter?: Meter
}

type Take = (value: number, labels: Labels) => void

/**
 * Spans and metrics for OpenTelemetry. One span for each protected call, in which its work runs; the span of a replay
 * links to that of the attempt whose reply it is.
 *
 * @example
 * const once = onlyonce({ store, secret, observe: openTelemetry() })
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): Observer {
  refuseUnknown('openTelemetry()', options, { tracer: true, meter: true })
  const tracer = options.tracer ?? trace.getTracer('onlyonce')
  const meter = options.meter ?? metrics.getMeter('onlyonce')
  const retryRate = new RetryRate()
  const bounded = new BoundedLabels()
  const takes = Object.fromEntries(
    Object.keys(METRICS).map((key) => [key, instrument(key as MetricKey, meter, retryRate)]),
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
    trace: (call) => traceOf(tracer, call),
  }
}

function traceOf(tracer: Tracer, { protection, id }: TracedCall): CallTrace {
  const span = tracer.startSpan(`onlyonce ${protection}`, {
    kind: SpanKind.INTERNAL,
    attributes: {
      'onlyonce.operation': showText(id.operation),
      'onlyonce.protection': protection,
      'onlyonce.key_digest': digestKey(id.key),
    },
  })
  const inside = trace.setSpan(context.active(), span)
  const { traceId, spanId, traceFlags } = span.spanContext()
  return {
    traceparent: formatTraceParent({ traceId: traceId, spanId: spanId, flags: traceFlags }),
    run: (work) => context.with(inside, work),
    end: (end, links) => endSpan(span, end, links),
  }
}

function endSpan(span: Span, end: CallEnded, links: readonly TraceLink[]): void {
  try {
    span.setAttributes({ 'onlyonce.outcome': end.outcome, 'onlyonce.joined': end.joined })
    if (end.fence !== null) span.setAttribute('onlyonce.fence', end.fence)
    if (end.code !== null) span.setAttribute('onlyonce.error_code', end.code)
    // A request that is wrong is no failure of the service.
    if (end.failure !== null && end.outcome !== 'invalid') {
      // Not recordException: it takes the whole message and the stack, card numbers included.
      const message = showText(`${end.failure.code}: ${end.failure.message}`)
      span.setStatus({ code: SpanStatusCode.ERROR, message })
    }
    for (const link of links) addLink(span, link)
  } finally {
    span.end()
  }
}

/** A trace that cannot be read is left out: it comes from a column that others may have written. */
function addLink(span: Span, { to, traceparent }: TraceLink): void {
  const parent = parseTraceParent(traceparent)
  if (parent === null) return
  const { traceId, spanId, flags } = parent
  span.addLink({
    context: { traceId: traceId, spanId: spanId, traceFlags: flags, isRemote: true },
    attributes: { 'onlyonce.link': to },
  })
}

function instrument(key: MetricKey, meter: Meter, retryRate: RetryRate): Take {
  const { name, kind, unit, help, buckets } = METRICS[key]
  const options = { description: help, unit }
  switch (kind) {
    case 'counter': {
      const counter = meter.createCounter(name, options)
      return (value, labels) => counter.add(value, labels)
    }
    case 'up_down': {
      const counter = meter.createUpDownCounter(name, options)
      return (value, labels) => counter.add(value, labels)
    }
    case 'gauge': {
      const gauge = meter.createGauge(name, options)
      return (value, labels) => gauge.record(value, labels)
    }
    case 'histogram': {
      const advice = { explicitBucketBoundaries: [...(buckets ?? [])] }
      const histogram = meter.createHistogram(name, { ...options, advice })
      return (value, labels) => histogram.record(value, labels)
    }
    case 'sampled': {
      meter.createObservableGauge(name, options).addCallback((result) => result.observe(retryRate.value))
      return () => {}
    }
    default:
      return kind satisfies never
  }
}
