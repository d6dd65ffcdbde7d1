import { Registry } from 'prom-client'
import { expect, it } from 'vitest'
import { LIMITS } from '../core/limits.ts'
import { BoundedLabels } from './bounded-labels.ts'
import { prometheus } from './prometheus.ts'
import type { Signal } from './signals.ts'

it('keeps the values of a label few, each label by itself, and those that were first', () => {
  const bounded = new BoundedLabels()
  const first = { operation: 'payments.create', protection: 'handler' }
  expect(bounded.of(first)).toBe(first)
  for (let i = 0; i < 10 * LIMITS.labelValuesMax; i += 1) bounded.of({ operation: `op-${i}` })
  expect(bounded.of({ operation: 'one more', protection: 'transaction' })).toEqual({
    operation: 'other',
    protection: 'transaction',
  })
  expect(bounded.of(first)).toEqual(first)
})

it('a client that could choose names does not fill the metrics', async () => {
  const registry = new Registry()
  const observer = prometheus({ registry })
  for (let i = 0; i < 5_000; i += 1) {
    const id = { account: 'a', operation: `POST /orders/${i}`, key: 'k' }
    observer.signal?.({ signal: 'not_admitted', protection: 'handler', id, code: 'rate_limited' } as Signal)
  }
  const lines = (await registry.metrics()).split('\n').filter((line) => line.includes('not_admitted_total{'))
  expect(lines.length).toBe(LIMITS.labelValuesMax + 1)
  expect(lines.some((line) => line.includes('operation="other"'))).toBe(true)
})
