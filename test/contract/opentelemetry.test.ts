import { createHash } from 'node:crypto'
import { SpanStatusCode, trace } from '@opentelemetry/api'
import { beforeAll, describe, expect, test } from 'vitest'
import { openTelemetry } from '../../src/observe/opentelemetry.ts'
import { openMemoryTelemetry, type Telemetry } from '../setup/telemetry.ts'
import { beginCaller, catchError, makeCall, makeGate, openShop, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

function open() {
  const telemetry = openMemoryTelemetry()
  return { telemetry, once: shop.open({ observe: telemetry.observer }) }
}

const traceOf = async (key: string) =>
  (await shop.observer.query('SELECT trace FROM onlyonce.records WHERE key = $1', [key])).rows[0].trace

const spansNamed = (telemetry: Telemetry, name: string) =>
  telemetry.spans().filter((span) => span.name === name)

describe('a span', () => {
  test('is one for each call, and what the work does is inside it', async () => {
    const { telemetry, once } = open()
    const { tracer } = telemetry
    const call = makeCall()
    const inner = async () => tracer.startActiveSpan('inner', async (span) => span.end())
    await tracer.startActiveSpan('outer', async (span) => {
      await once.transaction(call, async (tx) => {
        await tx.query('SELECT 1')
        await inner()
      })
      await once.execute(makeCall(), inner)
      const client = await beginCaller(shop)
      await once.within(client, makeCall(), inner)
      span.end()
    })
    const [outer] = spansNamed(telemetry, 'outer')
    const children = spansNamed(telemetry, 'inner')
    for (const [i, kind] of ['transaction', 'handler', 'within'].entries()) {
      const [span, ...more] = spansNamed(telemetry, `onlyonce ${kind}`)
      expect(more).toEqual([])
      expect(span?.parentSpanContext?.spanId).toBe(outer?.spanContext().spanId)
      expect(children[i]?.parentSpanContext?.spanId).toBe(span?.spanContext().spanId)
      expect(span?.attributes).toMatchObject({
        'onlyonce.operation': 'transfers.create',
        'onlyonce.protection': kind,
        'onlyonce.outcome': 'executed',
        'onlyonce.fence': 1,
        'onlyonce.joined': false,
      })
      expect(span?.status.code).toBe(SpanStatusCode.UNSET)
    }
    const digest = createHash('sha256').update(call.key).digest('hex').slice(0, 12)
    const [span] = spansNamed(telemetry, 'onlyonce transaction')
    expect(span?.attributes['onlyonce.key_digest']).toBe(digest)
  })

  test.each(['transaction', 'handler', 'within'] as const)(
    'of a replay links to that of the original: %s',
    async (kind) => {
      const { telemetry, once } = open()
      const call = makeCall()
      const run = async () => {
        if (kind !== 'within') return await once[kind === 'handler' ? 'execute' : kind](call, async () => 1)
        const client = await beginCaller(shop)
        const result = await once.within(client, call, async () => 1)
        await client.query('COMMIT')
        return result
      }
      await run()
      expect((await run()).outcome).toBe('replayed')
      const [original, replay] = spansNamed(telemetry, `onlyonce ${kind}`)
      const { traceId, spanId } = original!.spanContext()
      expect(await traceOf(call.key)).toBe(`00-${traceId}-${spanId}-01`)
      expect(original!.links).toEqual([])
      expect(replay!.attributes['onlyonce.outcome']).toBe('replayed')
      expect(replay!.links).toMatchObject([
        { context: { traceId, spanId, isRemote: true }, attributes: { 'onlyonce.link': 'original' } },
      ])
    },
  )

  test('of one who joined links to the flight', async () => {
    const { telemetry, once } = open()
    const call = makeCall()
    const gate = makeGate()
    const both = [1, 2].map(() => once.execute(call, () => gate.pass()))
    await gate.reached
    gate.open()
    await Promise.all(both)
    const spans = spansNamed(telemetry, 'onlyonce handler')
    const first = spans.find((span) => span.attributes['onlyonce.joined'] === false)!
    const joined = spans.find((span) => span.attributes['onlyonce.joined'] === true)!
    expect(joined.attributes['onlyonce.outcome']).toBe('replayed')
    expect(joined.links).toMatchObject([
      { context: { spanId: first.spanContext().spanId }, attributes: { 'onlyonce.link': 'flight' } },
    ])
  })

  test('ignores a trace in the database that is none', async () => {
    const { telemetry, once } = open()
    const call = makeCall()
    await once.transaction(call, async () => 1)
    await shop.observer.query('UPDATE onlyonce.records SET trace = $1 WHERE key = $2', [
      '00-nonsense',
      call.key,
    ])
    expect((await once.transaction(call, async () => 1)).outcome).toBe('replayed')
    expect(spansNamed(telemetry, 'onlyonce transaction')[1]?.links).toEqual([])
  })

  test('is an error exactly where the caller got one', async () => {
    const { telemetry, once } = open()
    const call = makeCall()
    await catchError(once.execute(call, () => Promise.reject(new TypeError('card 4242424242424242'))))
    await catchError(once.execute(call, async () => 1))
    expect((await once.execute({ ...call, input: 'other' }, async () => 1)).outcome).toBe('key_reused')
    const [failed, replayed, reused] = spansNamed(telemetry, 'onlyonce handler')
    expect(failed?.status).toEqual({ code: SpanStatusCode.ERROR, message: 'TypeError: card [card number]' })
    expect(failed?.attributes).toMatchObject({
      'onlyonce.outcome': 'failed',
      'onlyonce.error_code': 'thrown',
    })
    expect(failed?.events).toEqual([])
    expect(replayed?.status.code).toBe(SpanStatusCode.ERROR)
    expect(replayed?.attributes).toMatchObject({
      'onlyonce.outcome': 'replayed',
      'onlyonce.error_code': 'handler_failed',
    })
    expect(reused?.status.code).toBe(SpanStatusCode.UNSET)
  })

  test('that nobody records leaves no trace in the record', async () => {
    const once = shop.open({ observe: openTelemetry({ tracer: trace.getTracer('none') }) })
    const call = makeCall()
    await once.transaction(call, async () => 1)
    expect(await traceOf(call.key)).toBeNull()
  })
})

test('metrics are counted under the names of the table', async () => {
  const { telemetry, once } = open()
  const call = makeCall()
  for (const _ of [1, 2]) await once.transaction(call, async () => 1)
  const attributes = { operation: 'transfers.create', protection: 'transaction' }
  const created = await telemetry.points('api.idempotency.reserve.created.count')
  expect(created).toMatchObject([{ attributes, value: 1 }])
  const replayed = await telemetry.points('api.idempotency.reserve.replay.count')
  expect(replayed).toMatchObject([{ attributes, value: 1 }])
  expect(await telemetry.points('api.idempotency.retry.rate')).toMatchObject([{ value: 0.5 }])
  expect(await telemetry.points('api.idempotency.calls.in_flight')).toMatchObject([{ value: 0 }])
  const durations = await telemetry.points('api.idempotency.call.duration')
  expect(durations).toMatchObject([
    { attributes: { protection: 'transaction', outcome: 'executed' }, value: { count: 1 } },
    { attributes: { protection: 'transaction', outcome: 'replayed' }, value: { count: 1 } },
  ])
})

test('the counters of alarms are there, at zero, since the first call of their operation', async () => {
  const { telemetry, once } = open()
  await once.transaction(makeCall(), async () => 1)
  const points = await telemetry.points('api.idempotency.parked.count')
  expect(points.map(({ attributes, value }) => ({ attributes, value }))).toEqual([
    { attributes: { operation: 'transfers.create' }, value: 0 },
  ])
})
