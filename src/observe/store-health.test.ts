import { expect, it } from 'vitest'
import { makeRecorder } from '../../test/setup/recorder.ts'
import { LIMITS } from '../core/limits.ts'
import { logTo } from './log.ts'
import { Observers } from './observers.ts'
import { StoreHealth } from './store-health.ts'

const trouble = { code: 'store_unavailable', reason: 'refused', message: 'm' }

function watch() {
  const heard = makeRecorder()
  const clock = { ms: 5_000 }
  return { heard, clock, health: new StoreHealth(new Observers(heard), () => clock.ms) }
}

it('tells once that a store went away, counts, and tells once that it is back', () => {
  const { heard, clock, health } = watch()
  health.answered()
  for (let count = 0; count < 100; count += 1) health.failed(trouble)
  expect(heard.signals).toEqual([{ signal: 'store_away', ...trouble, failures: 1, awayMs: 0 }])
  clock.ms += LIMITS.storeAwayAgainMs
  for (let count = 0; count < 100; count += 1) health.failed({ ...trouble, reason: 'silent' })
  expect(heard.signals.slice(1)).toEqual([
    { signal: 'store_away', ...trouble, reason: 'silent', failures: 101, awayMs: 30_000 },
  ])
  clock.ms += 10
  for (const _ of [1, 2]) health.answered()
  expect(heard.signals.slice(2)).toEqual([{ signal: 'store_back', failures: 200, awayMs: 30_010 }])
})

it('tells a store that fails now and then as seldom', () => {
  const { heard, clock, health } = watch()
  for (let count = 0; count < 3_000; count += 1) {
    health.failed(trouble)
    health.answered()
    clock.ms += 20
  }
  expect(heard.signals.map(({ signal }) => signal)).toEqual([
    'store_away',
    'store_back',
    'store_away',
    'store_back',
  ])
})

it('tells each outage when it begins, also shortly after the last line', () => {
  const { heard, clock, health } = watch()
  health.failed(trouble)
  health.answered()
  clock.ms += LIMITS.storeSteadyMs
  for (let count = 0; count < 100; count += 1) health.failed({ ...trouble, reason: 'silent' })
  expect(heard.signals.slice(2)).toEqual([
    { signal: 'store_away', ...trouble, reason: 'silent', failures: 1, awayMs: 0 },
  ])
  clock.ms += LIMITS.storeAwayAgainMs
  health.failed(trouble)
  expect(heard.of('store_away')).toHaveLength(3)
})

it('tells an outage that begins while it was not well yet when no answer comes for a moment', () => {
  const { heard, clock, health } = watch()
  health.failed(trouble)
  health.answered()
  clock.ms += 500
  health.failed(trouble)
  clock.ms += LIMITS.storeAwaySureMs - 1
  health.failed(trouble)
  expect(heard.of('store_away')).toHaveLength(1)
  clock.ms += 1
  for (let count = 0; count < 100; count += 1) health.failed(trouble)
  expect(heard.signals.slice(2)).toEqual([
    { signal: 'store_away', ...trouble, failures: 3, awayMs: LIMITS.storeAwaySureMs },
  ])
  health.answered()
  expect(heard.signals.slice(3)).toEqual([{ signal: 'store_back', failures: 102, awayMs: 1_000 }])
})

it('logs what fails because of it at debug, and a worker whose store is another one as ever', () => {
  const lines: string[] = []
  const at = (level: string) => (fields: object) =>
    lines.push(`${level} ${(fields as { signal: string }).signal}`)
  const log = logTo({ debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') })
  const failed = { signal: 'worker_failed', worker: 'w', ...trouble } as const
  log.signal?.(failed)
  log.signal?.({ signal: 'store_away', ...trouble, failures: 1, awayMs: 0 })
  log.signal?.(failed)
  log.signal?.({ ...failed, code: '42P01', reason: null })
  log.signal?.({ signal: 'store_back', failures: 1, awayMs: 0 })
  log.signal?.(failed)
  expect(lines).toEqual([
    'error worker_failed',
    'error store_away',
    'debug worker_failed',
    'error worker_failed',
    'warn store_back',
    'error worker_failed',
  ])
})
