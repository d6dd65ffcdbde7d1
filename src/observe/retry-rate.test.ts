import { expect, it } from 'vitest'
import { RetryRate } from './retry-rate.ts'
import type { Reserved } from './signals.ts'

const id = { account: 'a', operation: 'o', key: 'k' }

function makeRate() {
  let now = 5_000_000
  const rate = new RetryRate({ clock: () => now })
  const hear = (...kinds: Reserved[]) => {
    for (const kind of kinds) rate.hear({ signal: 'reserved', protection: 'handler', id, kind, fence: null })
  }
  const pass = (ms: number) => {
    now += ms
  }
  return { rate, hear, pass }
}

it('is nothing when nothing came', () => {
  expect(makeRate().rate.value).toBe(0)
})

it('is the share of those that were not first attempts', () => {
  const { rate, hear } = makeRate()
  hear('created', 'created', 'created')
  expect(rate.value).toBe(0)
  hear('replay', 'in_progress', 'failed_retry', 'unknown', 'parked')
  expect(rate.value).toBe(5 / 8)
})

it('leaves reused keys out, and everything that is no reservation', () => {
  const { rate, hear } = makeRate()
  hear('created', 'replay')
  rate.hear({ signal: 'key_misuse', security: true, protection: 'handler', id })
  rate.hear({ signal: 'call_started', protection: 'handler', id })
  expect(rate.value).toBe(1 / 2)
})

it('forgets what is older than a minute, second by second', () => {
  const { rate, hear, pass } = makeRate()
  hear('replay', 'replay')
  pass(30_000)
  hear('created', 'created')
  expect(rate.value).toBe(1 / 2)
  pass(29_999)
  expect(rate.value).toBe(1 / 2)
  pass(1)
  expect(rate.value).toBe(0)
  hear('replay')
  expect(rate.value).toBe(1 / 3)
  pass(60_000)
  expect(rate.value).toBe(0)
})

it('starts each second anew when the ring comes round', () => {
  const { rate, hear, pass } = makeRate()
  hear('replay')
  pass(60_000)
  hear('created')
  expect(rate.value).toBe(0)
  pass(3_600_000)
  hear('replay')
  expect(rate.value).toBe(1)
})
