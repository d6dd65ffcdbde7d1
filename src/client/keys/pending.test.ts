import 'fake-indexeddb/auto'
import { indexedDB } from 'fake-indexeddb'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { makeLocks } from '../../../test/setup/web-locks.ts'
import { Executed, type KeyStatus, NotExecuted, OutcomeUnknown } from '../index.ts'
import { type ActionTurn, type PendingActionOptions, pendingIn } from './pending.ts'
import { indexedDbStorage, type KeyStorage, memoryStorage } from './storage.ts'
import { makeTab, type Surroundings } from './tab.ts'

const ORDER = { amount: 100, currency: 'EUR' }
const EDITED = { amount: 200, currency: 'EUR' }

const unknown = () => new OutcomeUnknown({ code: 'no_answer' })
const statusOf =
  (executed: KeyStatus['executed']) =>
  async (key: string): Promise<KeyStatus> => ({
    key,
    state: executed === 'unknown' ? 'none' : 'completed',
    executed,
    status: null,
    location: null,
    detail: '',
  })

/** A page with its storage; each call of `page()` is a load of it. */
function browser(storage: KeyStorage = memoryStorage(), around: Surroundings = {}) {
  const sent: (ActionTurn & { payload: unknown })[] = []
  const page = (more: Partial<PendingActionOptions> = {}) => {
    const action = pendingIn(makeTab(around), 'checkout:cart-42', { storage, user: 'usr_1', ...more })
    const tap = (payload: unknown, end: () => unknown = () => ({ status: 201 })) =>
      action.run(payload, async (turn) => {
        sent.push({ ...turn, payload })
        return await end()
      })
    return { ...action, tap }
  }
  return { page, sent, keys: () => sent.map(({ key }) => key) }
}

const fail = (thrown: unknown) => () => {
  throw thrown
}

describe('the key of an action', () => {
  it('is the same for two clicks at once, which share one flight', async () => {
    const { page, sent } = browser()
    const { tap } = page()
    let end = (_: unknown) => {}
    const flight = new Promise((resolve) => {
      end = resolve
    })
    const clicks = [tap(ORDER, () => flight), tap({ currency: 'EUR', amount: 100 }, () => flight)]
    end({ status: 201 })
    expect(await Promise.all(clicks)).toEqual([{ status: 201 }, { status: 201 }])
    expect(sent.length).toBe(1)
  })

  it('is the same after a failure in doubt, after a reload and after a crash, and is told to be sent before', async () => {
    const { page, sent, keys } = browser()
    const first = page()
    await expect(first.tap(ORDER, fail(unknown()))).rejects.toThrow(OutcomeUnknown)
    await expect(first.tap(ORDER, fail(new Error('a mistake of the page')))).rejects.toThrow('mistake')
    // The page crashes: nothing of it runs on.
    void page().tap(ORDER, () => new Promise(() => {}))
    await vi.waitFor(() => expect(sent.length).toBe(3))
    await page().tap(ORDER)
    expect(new Set(keys()).size).toBe(1)
    expect(sent.map(({ resumed }) => resumed)).toEqual([false, true, true, true])
  })

  it('is another one after the outcome is known', async () => {
    const { page, keys } = browser()
    for (const end of [{ status: 201 }, { response: { status: 402 } }, undefined])
      await page().tap(ORDER, () => end)
    await expect(page().tap(ORDER, fail(new Executed({ code: 'reply_not_kept' })))).rejects.toThrow(Executed)
    await page().tap(ORDER)
    expect(new Set(keys()).size).toBe(5)
  })

  it('is used again by the same payload where it is proved not to have been executed', async () => {
    const { page, sent, keys } = browser()
    await expect(page().tap(ORDER, fail(new NotExecuted({ code: 'offline' })))).rejects.toThrow(NotExecuted)
    await page().tap(ORDER)
    expect(new Set(keys()).size).toBe(1)
    expect(sent[1]!.resumed).toBe(false)
  })

  it('belongs to one user: another login never gets it', async () => {
    const { page, keys } = browser()
    let user: string | null = 'usr_1'
    const now = () => page({ user: () => user })
    await expect(now().tap(ORDER, fail(unknown()))).rejects.toThrow()
    user = 'usr_2'
    expect(await now().resume()).toBeNull()
    await expect(now().tap(ORDER, fail(unknown()))).rejects.toThrow()
    user = null
    await expect(now().tap(ORDER, fail(unknown()))).rejects.toThrow()
    expect(new Set(keys()).size).toBe(3)
    user = 'usr_1'
    expect(await now().resume()).toMatchObject({ key: keys()[0] })
    expect(() => page({ user: undefined as unknown as null })).toThrow(TypeError)
  })

  it('is stored without the payload, the user or the name', async () => {
    const items: string[][] = []
    const storage = {
      ...memoryStorage(),
      setItem: (name: string, value: string) => items.push([name, value]),
    }
    await browser(storage).page().tap({ card: 'tok_secret', amount: 100 })
    for (const text of items.flat()) expect(text).not.toMatch(/tok_secret|usr_1|cart-42|amount/)
    expect(items.length).toBe(2)
  })

  it('is issued by the server, where it is so', async () => {
    const { page, keys } = browser()
    await page({ makeKey: async () => 'once.1.a' }).tap(ORDER)
    expect(keys()).toEqual(['once.1.a'])
    const none = page({ makeKey: () => Promise.reject(new Error('down')) }).tap(ORDER)
    await expect(none).rejects.toMatchObject({ name: 'NotExecuted', code: 'no_key' })
    const thrown = page({ makeKey: fail(new Error('down')) }).tap(ORDER)
    await expect(thrown).rejects.toMatchObject({ name: 'NotExecuted', code: 'no_key' })
  })
})

describe('an edited payload', () => {
  it('gets a key of its own after the first one is known not to have been executed', async () => {
    for (const end of [fail(new NotExecuted({ code: 'offline' })), () => ({ status: 402 })]) {
      const { page, keys } = browser()
      await page()
        .tap(ORDER, end)
        .catch(() => {})
      await page().tap(EDITED)
      expect(new Set(keys()).size).toBe(2)
    }
    const { page, keys } = browser()
    await expect(page().tap(ORDER, fail(unknown()))).rejects.toThrow()
    await page({ status: statusOf('no') }).tap(EDITED)
    expect(new Set(keys()).size).toBe(2)
  })

  it('is told otherwise, and nothing is sent', async () => {
    const { page, sent, keys } = browser()
    await expect(page().tap(ORDER, fail(unknown()))).rejects.toThrow()
    const told = { name: 'OutcomeUnknown', code: 'action_pending', key: keys()[0] }
    await expect(page().tap(EDITED)).rejects.toMatchObject(told)
    // "No such key" proves nothing.
    await expect(page({ status: statusOf('unknown') }).tap(EDITED)).rejects.toMatchObject(told)
    const away = new Error('away')
    const asking = page({ status: () => Promise.reject(away) }).tap(EDITED)
    await expect(asking).rejects.toMatchObject({ ...told, cause: away })
    const paid = { name: 'Executed', code: 'action_executed', key: keys()[0] }
    await expect(page({ status: statusOf('yes') }).tap(EDITED)).rejects.toMatchObject(paid)
    expect(sent.length).toBe(1)
    // It was told once. What the user sends now is another action.
    await page().tap(EDITED)
    expect(new Set(keys()).size).toBe(2)
  })

  it('asks for the status by the error itself', async () => {
    const { page } = browser()
    await expect(page().tap(ORDER, fail(unknown()))).rejects.toThrow()
    const error = await page({ status: statusOf('unknown') })
      .tap(EDITED)
      .then(() => null)
      .catch((thrown: OutcomeUnknown) => thrown)
    expect(await error!.status()).toMatchObject({ state: 'none' })
  })

  it('is one that means something else: members in another order are the same', async () => {
    const { page, keys } = browser()
    const nested = { a: [{ b: 1, c: null }], d: 'ü' }
    await expect(page().tap(nested, fail(unknown()))).rejects.toThrow()
    await expect(page().tap({ d: 'ü', a: [{ c: null, b: 1 }] }, fail(unknown()))).rejects.toThrow('not known')
    expect(new Set(keys()).size).toBe(1)
    for (const other of [{ a: [{ b: 1, c: 0 }], d: 'ü' }, 'text', 1, '1', null, [], {}]) {
      await expect(page().tap(other)).rejects.toMatchObject({ code: 'action_pending' })
    }
    for (const unclear of [new Map(), new Blob(['a']), undefined, { a: new Uint8Array(1) }, 1n]) {
      expect(() => page().tap(unclear)).toThrow(TypeError)
    }
  })
})

describe('after a load', () => {
  afterEach(() => vi.useRealTimers())

  it('an unsettled action is told with its status, and nothing is sent', async () => {
    const { page, sent, keys } = browser()
    expect(await page().resume()).toBeNull()
    await expect(page().tap(ORDER, fail(unknown()))).rejects.toThrow()
    expect(await page().resume()).toEqual({ key: keys()[0], status: null })
    expect(await page({ status: () => Promise.reject(new Error('away')) }).resume()).toMatchObject({
      status: null,
    })
    const open = await page({ status: statusOf('unknown') }).resume()
    expect(open).toMatchObject({ key: keys()[0], status: { state: 'none' } })
    const done = await page({ status: statusOf('yes') }).resume()
    expect(done).toMatchObject({ key: keys()[0], status: { executed: 'yes' } })
    await vi.waitFor(async () => expect(await page().resume()).toBeNull())
    expect(sent.length).toBe(1)
    await page().tap(ORDER)
    expect(new Set(keys()).size).toBe(2)
  })

  it('settles only what it has asked about, also where the answer comes late', async () => {
    const { page, keys } = browser()
    await expect(page().tap(ORDER, fail(unknown()))).rejects.toThrow()
    let answer = () => {}
    const asked = new Promise<void>((resolve) => {
      answer = resolve
    })
    const status = async (key: string) => {
      await asked
      return await statusOf('yes')(key)
    }
    const slow = page({ status })
    const resuming = slow.resume()
    // Meanwhile another page goes on: the first one is settled, and the next one in doubt.
    await page().tap(ORDER)
    await expect(page().tap(ORDER, fail(unknown()))).rejects.toThrow()
    answer()
    expect(await resuming).toMatchObject({ key: keys()[0] })
    await slow.tap(ORDER)
    expect(keys()[2]).not.toBe(keys()[0])
    expect(keys()[3]).toBe(keys()[2])
  })

  it('never expires by the clock', async () => {
    const { page, keys } = browser()
    await expect(page().tap(ORDER, fail(unknown()))).rejects.toThrow()
    vi.useFakeTimers({ now: Date.now() + 10 * 365 * 86_400_000, toFake: ['Date'] })
    await page().tap(ORDER)
    expect(new Set(keys()).size).toBe(1)
  })

  it('leaves nothing behind, a while after its outcome is known', async () => {
    vi.useFakeTimers()
    const storage = memoryStorage()
    const names = new Set<string>()
    const setItem = (name: string, value: string) => {
      names.add(name)
      storage.setItem(name, value)
    }
    const { page } = browser({ ...storage, setItem })
    const kept = () => Promise.all([...names].map((name) => storage.getItem(name)))
    await page().tap(ORDER)
    expect((await kept())[0]).toMatch(/"yes"/)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(await kept()).toEqual([null])
    // What is unsettled stays, also where an earlier outcome was to be forgotten.
    await page().tap(ORDER)
    await expect(page().tap(ORDER, fail(unknown()))).rejects.toThrow()
    await vi.advanceTimersByTimeAsync(100_000_000)
    expect((await kept())[0]).toMatch(/"open"/)
  })

  it('is settled by what its caller has found out', async () => {
    const { page, keys } = browser()
    await expect(page().tap(ORDER, fail(unknown()))).rejects.toThrow()
    await page().settle('no')
    await page().tap(EDITED)
    expect(new Set(keys()).size).toBe(2)
  })
})

describe('a storage that fails', () => {
  const broken = (name: keyof KeyStorage) => ({
    ...memoryStorage(),
    [name]: () => Promise.reject(new Error('quota')),
  })

  it('sends nothing with a key that could not be kept', async () => {
    const { page, sent } = browser(broken('setItem'))
    await expect(page().tap(ORDER)).rejects.toMatchObject({ name: 'NotExecuted', code: 'storage_failed' })
    expect(sent).toEqual([])
  })

  it('sends nothing where a key may be kept that cannot be read', async () => {
    const told = { name: 'OutcomeUnknown', code: 'storage_failed' }
    const { page, sent } = browser(broken('getItem'))
    await expect(page().tap(ORDER)).rejects.toMatchObject(told)
    for (const text of ['{', '"text"', '{}', '17']) {
      const storage = { ...memoryStorage(), getItem: () => text }
      await expect(browser(storage).page().tap(ORDER)).rejects.toMatchObject(told)
    }
    expect(sent).toEqual([])
  })

  it('keeps the key open where its outcome could not be noted: the same payload gets the stored answer', async () => {
    const kept = memoryStorage()
    let writes = 0
    const storage = {
      ...kept,
      setItem: (name: string, value: string) =>
        ++writes === 2 ? fail(new Error('quota'))() : kept.setItem(name, value),
    }
    const { page, keys } = browser(storage)
    expect(await page().tap(ORDER)).toEqual({ status: 201 })
    await page().tap(ORDER)
    expect(new Set(keys()).size).toBe(1)
  })
})

describe('storages', () => {
  const asyncStorage = (): KeyStorage => {
    const kept = memoryStorage()
    return {
      getItem: async (name) => await kept.getItem(name),
      setItem: async (name, value) => void kept.setItem(name, value),
      removeItem: async (name) => void kept.removeItem(name),
    }
  }
  const KINDS: [string, () => KeyStorage][] = [
    ['the shape of localStorage', memoryStorage],
    ['the shape of AsyncStorage', asyncStorage],
    ['IndexedDB', () => indexedDbStorage(`db-${crypto.randomUUID()}`)],
  ]
  it.each(KINDS)('%s keeps a key over loads', async (_, make) => {
    const { page, keys } = browser(make())
    await expect(page().tap(ORDER, fail(unknown()))).rejects.toThrow()
    expect(await page().resume()).not.toBeNull()
    await page().tap(ORDER)
    expect(new Set(keys()).size).toBe(1)
    expect(await page().resume()).toBeNull()
    await page().settle('no')
  })

  it('IndexedDB removes, and rejects where it cannot be opened', async () => {
    const storage = indexedDbStorage(`db-${crypto.randomUUID()}`)
    expect(await storage.getItem('a')).toBeNull()
    await storage.setItem('a', '1')
    await storage.removeItem('a')
    expect(await storage.getItem('a')).toBeNull()
    const request = indexedDB.open('newer', 2)
    await new Promise((resolve) => {
      request.onsuccess = resolve
    })
    request.result.close()
    await expect(indexedDbStorage('newer').getItem('a')).rejects.toThrow(/version/)
  })
})

describe('two tabs', () => {
  const KINDS: [string, () => { around: () => Surroundings; shared: boolean }][] = [
    [
      'Web Locks and localStorage',
      () => {
        const locks = makeLocks()
        return { around: () => ({ navigator: { locks } }), shared: true }
      },
    ],
    ['BroadcastChannel and localStorage', () => ({ around: () => ({ BroadcastChannel }), shared: true })],
    [
      'Web Locks that the page may not use, BroadcastChannel and localStorage',
      () => {
        const locks = { request: () => Promise.reject(new Error('SecurityError')) }
        return { around: () => ({ navigator: { locks }, BroadcastChannel }), shared: true }
      },
    ],
    [
      'Web Locks, BroadcastChannel and a sessionStorage each',
      () => {
        const locks = makeLocks()
        const around = () => ({ navigator: { locks }, BroadcastChannel, sessionStorage: memoryStorage() })
        return { around, shared: false }
      },
    ],
    [
      'BroadcastChannel and a sessionStorage each',
      () => ({ around: () => ({ BroadcastChannel, sessionStorage: memoryStorage() }), shared: false }),
    ],
  ]

  function tabs(around: () => Surroundings, shared: boolean, more: Partial<PendingActionOptions> = {}) {
    const sent: (ActionTurn & { tab: number })[] = []
    const common = memoryStorage()
    const name = `checkout:${crypto.randomUUID()}`
    const open = (tab: number) => {
      const here = around()
      const storage = shared ? common : here.sessionStorage!
      const action = pendingIn(makeTab(here), name, { storage, user: 'usr_1', ...more })
      return (payload: unknown, end: () => unknown = () => ({ status: 201 })) =>
        action.run(payload, async (turn) => {
          sent.push({ ...turn, tab })
          return await end()
        })
    }
    return { one: open(1), two: open(2), sent }
  }

  it.concurrent.each(KINDS)('with %s: a tap during another is the same action', async (_, kind) => {
    const { around, shared } = kind()
    const { one, two, sent } = tabs(around, shared)
    let end = (_: unknown) => {}
    const flight = new Promise((resolve) => {
      end = resolve
    })
    const first = one(ORDER, () => flight)
    await vi.waitFor(() => expect(sent.length).toBe(1))
    const second = two(ORDER)
    const other = two(EDITED).catch((thrown) => thrown)
    setTimeout(end, 150, { status: 201 })
    await Promise.all([first, second])
    expect(sent.map(({ tab }) => tab)).toEqual([1, 2])
    expect(sent[1]).toMatchObject({ key: sent[0]!.key, resumed: true })
    expect(await other).toMatchObject({ name: 'Executed', code: 'action_executed' })
    await one(ORDER)
    expect(sent[2]!.key).not.toBe(sent[0]!.key)
  })

  it.each(KINDS)('with %s: a key in doubt is that of both', async (_, kind) => {
    const { around, shared } = kind()
    const { one, two, sent } = tabs(around, shared)
    await expect(one(ORDER, fail(unknown()))).rejects.toThrow()
    await two(ORDER)
    expect(sent[1]).toMatchObject({ key: sent[0]!.key, resumed: true })
  })

  it.concurrent.each(KINDS)(
    'with %s: a key in doubt counts more than an outcome of the other tab',
    async (_, kind) => {
      const { around, shared } = kind()
      const { one, two, sent } = tabs(around, shared)
      await two(EDITED)
      await expect(one(ORDER, fail(unknown()))).rejects.toThrow()
      await two(ORDER)
      expect(sent[2]!.key).toBe(sent[1]!.key)
    },
  )

  it.concurrent.each(KINDS)('with %s: what one settles is settled for both', async (_, kind) => {
    const { around, shared } = kind()
    const { one, two, sent } = tabs(around, shared)
    await expect(one(ORDER, fail(unknown()))).rejects.toThrow()
    await two(ORDER)
    // The word of the other tab is on its way; until it is there the edit is refused.
    await vi.waitFor(() => one(EDITED))
    await two(ORDER)
    const [first, second, third, fourth] = sent.map(({ key }) => key)
    expect(second).toBe(first)
    expect(new Set([first, third, fourth]).size).toBe(3)
  })

  it.concurrent.each(KINDS)('with %s: of two taps at one moment, one chooses the key', async (_, kind) => {
    const { around, shared } = kind()
    const { one, two, sent } = tabs(around, shared)
    await Promise.all([one(ORDER), two(ORDER)])
    expect(sent.length).toBe(2)
    expect(sent[1]!.key).toBe(sent[0]!.key)
  })
})
