import { setImmediate } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { LIMITS } from '../core/limits.ts'
import { NO_SIGNALS, signalsOf } from './call-signals.ts'
import { logTo } from './log.ts'
import { Observers } from './observers.ts'
import type { Observer, Signal } from './signals.ts'

const id = { account: 'a', operation: 'o', key: 'k' }
const STARTED: Signal = { signal: 'call_started', protection: 'handler', id }
const warnings: string[] = []
const listen = (warning: Error) => warnings.push(`${warning.name} ${warning.message}`)
process.on('warning', listen)
afterEach(() => {
  warnings.length = 0
})

/** Warnings come in a later turn; ours come in order. */
async function warningsSoFar(): Promise<string[]> {
  process.emitWarning('the last one')
  while (!warnings.some((warning) => warning.includes('the last one'))) await setImmediate()
  return warnings.filter((warning) => warning.includes('Onlyonce'))
}

describe('observers that fail', () => {
  it('harm nobody, and are told of once', async () => {
    const heard: string[] = []
    const observers = new Observers([
      { signal: () => Promise.reject(new Error('late, with 4242 4242 4242 4242')) },
      {
        signal() {
          throw new Error('at once')
        },
      },
      { signal: ({ signal }) => void heard.push(signal) },
    ])
    observers.emit(STARTED)
    observers.emit(STARTED)
    expect(heard).toEqual(['call_started', 'call_started'])
    await Promise.resolve()
    const told = await warningsSoFar()
    expect(told).toHaveLength(2)
    expect(told.join()).toMatch(/at once.*late, with \[card number\]/)
  })

  it.each<[string, () => unknown]>([
    ['rejects', () => Promise.reject(new Error('not shipped'))],
    [
      'gives a thenable that rejects',
      // biome-ignore lint/suspicious/noThenProperty: loggers of other promise libraries give such objects.
      () => ({ then: (_: unknown, reject: (error: Error) => void) => reject(new Error('not shipped')) }),
    ],
    [
      'gives a thenable that throws',
      () => ({
        // biome-ignore lint/suspicious/noThenProperty: see above.
        then() {
          throw new Error('not shipped')
        },
      }),
    ],
  ])('a logger that %s: the process goes on, and is warned once', async (_, log) => {
    const write = log as () => void
    const observers = new Observers([logTo({ info: write, warn: write, error: write })])
    const misuse: Signal = { signal: 'key_misuse', security: true, protection: 'handler', id }
    observers.emit(misuse)
    observers.emit(misuse)
    await setImmediate()
    const told = await warningsSoFar()
    expect(told).toEqual([expect.stringMatching(/An observer failed.*not shipped/)])
  })

  it.each<[string, NonNullable<Observer['trace']>]>([
    [
      'throw at the start',
      () => {
        throw new Error('no')
      },
    ],
    [
      'throw instead of running',
      () => ({
        traceparent: null,
        run() {
          throw new Error('no')
        },
        end() {},
      }),
    ],
    ['run nothing', () => ({ traceparent: null, run: () => undefined as never, end() {} })],
    [
      'run twice, and throw at the end',
      () => ({
        traceparent: null,
        run(work) {
          work()
          return work()
        },
        end() {
          throw new Error('no')
        },
      }),
    ],
  ])('%s: the call runs, once', async (_, trace) => {
    const heard: string[] = []
    const observers = new Observers([{ trace }, { signal: ({ signal }) => void heard.push(signal) }])
    let runs = 0
    const signals = signalsOf(observers, 'handler', id)
    const value = await signals.run(async () => {
      runs += 1
      return 'value'
    })
    expect([value, runs]).toEqual(['value', 1])
    expect(heard).toEqual(['call_started', 'call_ended'])
    await warningsSoFar()
  })
})

describe('observers', () => {
  it('may be one, several or none', () => {
    expect(new Observers().none).toBe(true)
    expect(new Observers([]).none).toBe(true)
    expect(new Observers({ signal() {} }).none).toBe(false)
    expect(new Observers([{ signal() {} }, { trace: () => null }]).none).toBe(false)
  })

  it('cost one object for all calls where there are none', () => {
    const none = new Observers()
    expect(signalsOf(none, 'handler', id)).toBe(NO_SIGNALS)
  })

  it('are refused at the door when they are none', () => {
    expect(() => new Observers({} as Observer)).toThrow(expect.objectContaining({ code: 'option_invalid' }))
    expect(() => new Observers([null as unknown as Observer])).toThrow(/logTo\(logger\)/)
    expect(() => new Observers(console as unknown as Observer)).toThrow(/logTo\(logger\)/)
  })

  it('hand on the first span that there is, and nothing that is none', () => {
    const span = (n: number) => `00-0af7651916cd43dd8448eb211c80319c-000000000000000${n}-01`
    const given = [null, 'nul\0', undefined as unknown as string, span(1), span(2)]
    const observers = new Observers(
      given.map((traceparent) => ({
        trace: () => ({ traceparent, run: <T>(work: () => T) => work(), end() {} }),
      })),
    )
    expect(signalsOf(observers, 'handler', id).trace).toBe(span(1))
  })
})

describe('records that were parked', () => {
  const failure = { code: 'owner_vanished', message: 'the process died, card 4242 4242 4242 4242' }

  it('are a warning where nobody observes: the first of an operation, then the counts', async () => {
    const observers = new Observers()
    for (let count = 1; count <= 250; count += 1) observers.parked(id, failure)
    observers.parked({ ...id, operation: 'another' }, failure)
    const told = await warningsSoFar()
    expect(told.map((warning) => warning.split(' for an operator')[0])).toEqual([
      'OnlyonceParkedWarning o: A record was parked and waits',
      'OnlyonceParkedWarning o: 10 records were parked and wait',
      'OnlyonceParkedWarning o: 100 records were parked and wait',
      'OnlyonceParkedWarning another: A record was parked and waits',
    ])
    expect(told[0]).toContain('owner_vanished: the process died, card [card number]')
  })

  it('stay few lines under names that never come again, and are the business of observers where there are some', async () => {
    const observers = new Observers()
    for (let n = 0; n < LIMITS.warnedOperationsMax + 500; n += 1)
      observers.parked({ ...id, operation: `op-${n}` }, failure)
    const told = await warningsSoFar()
    expect(told).toHaveLength(LIMITS.warnedOperationsMax + 3)
    warnings.length = 0
    const heard: Signal[] = []
    new Observers({ signal: (signal) => void heard.push(signal) }).parked(id, failure)
    expect(heard).toEqual([{ signal: 'parked', id, failure }])
    expect(await warningsSoFar()).toEqual([])
  })
})

describe('operations that no worker takes', () => {
  it('are a warning where nothing observes, once for each, and a signal each time where something does', async () => {
    const observers = new Observers()
    for (const operation of ['o', 'o', 'another', 'o']) observers.unattended({ ...id, operation })
    const told = await warningsSoFar()
    expect(told.map((warning) => warning.split(':')[0])).toEqual([
      'OnlyonceUnattendedWarning o',
      'OnlyonceUnattendedWarning another',
    ])
    warnings.length = 0
    const heard: Signal[] = []
    const observed = new Observers({ signal: (signal) => void heard.push(signal) })
    observed.unattended(id)
    observed.unattended(id)
    expect(heard).toEqual([
      { signal: 'unattended', id },
      { signal: 'unattended', id },
    ])
    expect(await warningsSoFar()).toEqual([])
  })
})
