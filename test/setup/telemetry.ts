import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  type DataPoint,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import type { Observer } from '../../src/entries/observe.ts'
import { openTelemetry } from '../../src/observe/opentelemetry.ts'
import { cleanUpLater } from './clean-up.ts'

export interface Telemetry {
  readonly observer: Observer
  readonly tracer: ReturnType<BasicTracerProvider['getTracer']>
  spans(): readonly ReadableSpan[]
  /** All data points of one metric by now. */
  points(name: string): Promise<readonly DataPoint<unknown>[]>
  /** Everything that was exported, as text. */
  text(): Promise<string>
}

/** OpenTelemetry's own SDK, exporting into memory. */
export function openMemoryTelemetry(): Telemetry {
  const manager = new AsyncLocalStorageContextManager().enable()
  context.setGlobalContextManager(manager)
  const spanExporter = new InMemorySpanExporter()
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spanExporter)] })
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({
    exporter: metricExporter,
    exportIntervalMillis: 3_600_000,
  })
  const meters = new MeterProvider({ readers: [reader] })
  cleanUpLater(async () => {
    await Promise.all([tracers.shutdown(), meters.shutdown()])
    context.disable()
    trace.disable()
  })
  const tracer = tracers.getTracer('test')
  const exported = async () => {
    metricExporter.reset()
    await reader.forceFlush()
    return metricExporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
  }
  return {
    observer: openTelemetry({ tracer, meter: meters.getMeter('test') }),
    tracer,
    spans: () => spanExporter.getFinishedSpans(),
    async points(name) {
      const found = (await exported()).filter(({ descriptor }) => descriptor.name === name)
      return found.flatMap(({ dataPoints }) => [...dataPoints])
    },
    async text() {
      const spans = spanExporter.getFinishedSpans().map((span) => {
        const { name, attributes, events, links, status, resource } = span
        return { name, attributes, events, links, status, resource: resource.attributes }
      })
      return JSON.stringify([spans, await exported()])
    },
  }
}
