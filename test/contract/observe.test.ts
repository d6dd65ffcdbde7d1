import { beforeAll, describe, expect, test } from 'vitest'
import type { Observer } from '../../src/entries/observe.ts'
import { notExecuted, type Onlyonce, type Result } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { makeRecorder, type Recorder } from '../setup/recorder.ts'
import { beginCaller, type Call, catchError, makeCall, makeGate, openShop, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

type Door = Onlyonce<PostgresTx>
type Run = (once: Door, call: Call, work: () => Promise<unknown>) => Promise<Result<unknown>>

/** The three kinds of protection, called alike. */
const PROTECTIONS: Readonly<Record<'transaction' | 'within' | 'handler', Run>> = {
  // A transaction that is not used is told of too: see unused-tx.test.ts.
  transaction: (once, call, work) =>
    once.transaction(call, async (tx) => {
      await tx.query('SELECT 1')
      return await work()
    }),
  handler: (once, call, work) => once.execute(call, work),
  within: async (once, call, work) => {
    const client = await beginCaller(shop)
    try {
      const result = await once.within(client, call, work)
      await client.query('COMMIT')
      return result
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    }
  },
}

function open(): { once: Door; heard: Recorder } {
  const heard = makeRecorder()
  return { once: shop.open({ observe: heard }), heard }
}

/** Puts the record of a call into a state that no call leaves by itself. */
async function setState(call: Call, set: string): Promise<void> {
  const { rowCount } = await shop.observer.query(`UPDATE onlyonce.records SET ${set} WHERE key = $1`, [
    call.key,
  ])
  expect(rowCount).toBe(1)
}

const UNFINISHED = 'lease_until = NULL, expires_at = NULL, reply_status = NULL'

describe.each(Object.entries(PROTECTIONS))('%s tells', (protection, run) => {
  test('a first call, a replay and a reused key', async () => {
    const { once, heard } = open()
    const call = makeCall()
    await run(once, call, async () => 1)
    expect(heard.story(call.key)).toEqual(['call_started', 'reserved created', 'call_ended executed'])
    await run(once, call, async () => 2)
    expect(heard.story(call.key).slice(3)).toEqual(['call_started', 'reserved replay', 'call_ended replayed'])
    await run(once, { ...call, input: 'other' }, async () => 3)
    expect(heard.story(call.key).slice(6)).toEqual(['call_started', 'key_misuse', 'call_ended key_reused'])
    const { account, operation, key } = call
    const id = { account, operation, key }
    expect(heard.of('key_misuse')).toEqual([{ signal: 'key_misuse', security: true, protection, id }])
    expect(heard.of('call_ended').map(({ fence }) => fence)).toEqual([1, 1, null])
    for (const ended of heard.of('call_ended')) {
      expect(ended).toMatchObject({ protection, id, failure: null, joined: false })
      expect(ended.durationMs).toBeGreaterThan(0)
    }
  })

  test('work that throws, as a first attempt', async () => {
    const { once, heard } = open()
    const call = makeCall()
    await catchError(run(once, call, () => Promise.reject(new Error('card 4242424242424242'))))
    // What a handler did before it threw is not undone, and its key says so for good.
    const kept = protection === 'handler' ? ['handler_failed'] : []
    expect(heard.story(call.key)).toEqual([
      'call_started',
      'reserved created',
      ...kept,
      'call_ended failed thrown',
    ])
    expect(heard.of('call_ended')[0]?.failure).toEqual({ code: 'Error', message: 'card [card number]' })
    expect(heard.of('store_error')).toEqual([])
  })

  test('a record that may run again, when it does', async () => {
    const { once, heard } = open()
    const call = makeCall()
    const outside = makeRecorder()
    await catchError(shop.open({ observe: outside }).execute(call, () => Promise.reject(notExecuted())))
    expect(outside.story(call.key).at(-1)).toBe('call_ended failed not_executed')
    await run(once, call, async () => 1)
    expect(heard.story(call.key)).toEqual(['call_started', 'reserved failed_retry', 'call_ended executed'])
    expect(heard.of('reserved')[0]?.fence).toBe(2)
  })

  test('records that nobody may run', async () => {
    const { once, heard } = open()
    for (const state of ['unknown', 'parked']) {
      const call = makeCall()
      await run(once, call, async () => 1)
      // A doubt into which somebody will look: without a time for it, the retry would park it.
      const look = state === 'unknown' ? `look_at = now() + interval '1 hour', ` : ''
      await setState(call, `state = '${state}', ${look}${UNFINISHED}, error_code = 'c', error_message = 'm'`)
      await run(once, call, async () => 2)
      expect(heard.story(call.key).slice(3)).toEqual([
        'call_started',
        `reserved ${state}`,
        `call_ended ${state}`,
      ])
    }
  })

  test('another at work', async () => {
    const { once, heard } = open()
    const call = makeCall()
    const gate = makeGate()
    const other = shop.open().execute(call, () => gate.pass())
    await gate.reached
    expect((await run(once, call, async () => 2)).outcome).toBe('in_progress')
    gate.open()
    await other
    expect(heard.story(call.key)).toEqual(['call_started', 'reserved in_progress', 'call_ended in_progress'])
  })

  test('a record whose owner has vanished', async () => {
    const { once, heard } = open()
    const call = makeCall()
    await run(once, call, async () => 1)
    await setState(
      call,
      `state = 'in_progress', ${UNFINISHED}, lease_until = now() - interval '1 second'`.replace(
        'lease_until = NULL, ',
        '',
      ),
    )
    expect((await run(once, call, async () => 2)).outcome).toBe('unknown')
    const scheduled = protection === 'handler' ? ['reconcile_scheduled owner_vanished'] : []
    expect(heard.story(call.key).slice(3)).toEqual([
      'call_started',
      'zombie_key',
      ...scheduled,
      'reserved unknown',
      'call_ended unknown',
    ])
  })

  test('nothing that an observer does can harm a call', async () => {
    const broken: Observer = {
      signal() {
        throw new Error('broken')
      },
      trace() {
        throw new Error('broken')
      },
    }
    const heard = makeRecorder()
    const once = shop.open({ observe: [broken, heard] })
    const call = makeCall()
    expect(await run(once, call, async () => 1)).toEqual({ outcome: 'executed', value: 1 })
    expect(heard.story(call.key)).toEqual(['call_started', 'reserved created', 'call_ended executed'])
  })

  test('nor can a span that fails as its call does, or cannot be read, or an observer that changes what it is told', async () => {
    const rude: Observer[] = [
      {
        trace: () => ({
          traceparent: null,
          run: (work) => Promise.resolve(work()).finally(() => {}) as never,
          end() {},
        }),
      },
      {
        trace: () => ({
          get traceparent(): string {
            throw new Error('broken')
          },
          run: (work) => work(),
          end() {},
        }),
      },
      {
        signal(signal) {
          if ('id' in signal) (signal.id as { key: string }).key = 'the same for all'
        },
      },
    ]
    const once = shop.open({ observe: rude })
    const [one, other] = [makeCall(), makeCall()]
    const error = new Error('of the work')
    expect(await catchError(run(once, one, () => Promise.reject(error)))).toBe(error)
    expect(await run(once, other, async () => 1)).toEqual({ outcome: 'executed', value: 1 })
    expect((await once.explain(other)).state).toBe('completed')
  })
})

describe.each(['transaction', 'handler'] as const)('%s tells of those who shared a flight', (protection) => {
  const run = PROTECTIONS[protection]

  async function share(callers: number, work: () => Promise<unknown>) {
    const { once, heard } = open()
    await once.start()
    const call = makeCall()
    const gate = makeGate()
    const all = Array.from({ length: callers }, () =>
      run(once, call, async () => {
        await gate.pass()
        return await work()
      }),
    )
    await gate.reached
    const reused = await run(once, { ...call, input: 'other' }, work)
    gate.open()
    return { reused, results: await Promise.allSettled(all), heard, story: heard.story(call.key) }
  }

  test('that ended well', async () => {
    const { reused, heard, story } = await share(5, async () => 1)
    expect(reused).toEqual({ outcome: 'key_reused' })
    expect(heard.of('herd')).toMatchObject([{ protection, size: 5 }])
    expect(story.filter((line) => line === 'reserved created')).toHaveLength(1)
    expect(story.filter((line) => line === 'reserved replay')).toHaveLength(4)
    expect(story.filter((line) => line === 'key_misuse')).toHaveLength(1)
    expect(heard.of('call_ended').filter(({ joined }) => joined)).toHaveLength(4)
  })

  test('that failed', async () => {
    const { heard, story, results } = await share(3, () => Promise.reject(new Error('no')))
    expect(results.every(({ status }) => status === 'rejected')).toBe(true)
    expect(heard.of('herd')).toMatchObject([{ size: 3 }])
    expect(story.filter((line) => line === 'reserved created')).toHaveLength(1)
    expect(story.filter((line) => line === 'reserved in_progress')).toHaveLength(2)
    expect(story.filter((line) => line === 'call_ended failed thrown')).toHaveLength(3)
  })

  test('and not of one who was alone', async () => {
    const { heard } = await share(1, async () => 1)
    expect(heard.of('herd')).toEqual([])
  })
})
