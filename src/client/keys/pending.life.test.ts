import fc from 'fast-check'
import { expect, it } from 'vitest'
import { makeLocks } from '../../../test/setup/web-locks.ts'
import { Executed, type KeyStatus, NotExecuted, OutcomeUnknown } from '../index.ts'
import { type ActionTurn, pendingIn } from './pending.ts'
import { type KeyStorage, memoryStorage } from './storage.ts'
import { makeTab } from './tab.ts'

/**
 * The life of keys over taps, reloads, edits, lost networks, tabs and crashes, in any order. The server executes a key once; what the page hears of
 * it is drawn by chance. Two things must hold at every moment that a key is sent: no two keys for one payload that is unsettled, and no key
 * for two payloads.
 */
const FATES = [
  'paid',
  'answer lost',
  'request lost',
  'offline',
  'declined',
  'reply not kept',
  'mistake',
] as const
type Fate = (typeof FATES)[number]

type Command =
  | { readonly kind: 'tap'; readonly tab: number; readonly payload: string; readonly fate: Fate }
  | { readonly kind: 'taps'; readonly payloads: readonly string[]; readonly fate: Fate }
  | { readonly kind: 'crash'; readonly tab: number; readonly payload: string; readonly executed: boolean }
  | { readonly kind: 'reload'; readonly tab: number; readonly resume: boolean }
  | { readonly kind: 'meanwhile'; readonly tab: number; readonly taps: readonly (readonly [string, Fate])[] }

const tab = fc.integer({ min: 0, max: 1 })
const payload = fc.constantFrom('tea', 'coffee')
const fate = fc.constantFrom(...FATES)
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('tap' as const), tab, payload, fate }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('taps' as const),
      payloads: fc.array(payload, { minLength: 2, maxLength: 4 }),
      fate,
    }),
  },
  fc.record({ kind: fc.constant('crash' as const), tab, payload, executed: fc.boolean() }),
  fc.record({ kind: fc.constant('reload' as const), tab, resume: fc.boolean() }),
  fc.record({
    kind: fc.constant('meanwhile' as const),
    tab,
    taps: fc.array(fc.tuple(payload, fate), { minLength: 1, maxLength: 3 }),
  }),
)

class World {
  readonly #locks = makeLocks()
  readonly #storage = memoryStorage()
  readonly #payloads = new Map<string, string>()
  readonly #executed = new Map<string, boolean>()
  /** Keys that were sent, and whose outcome no page has heard. */
  readonly #unsettled = new Set<string>()
  readonly #heard = new Set<string>()
  readonly #statusIsAway: boolean
  #loads = 0
  readonly #pages: ReturnType<World['load']>[]

  constructor(statusIsAway: boolean) {
    this.#statusIsAway = statusIsAway
    this.#pages = [this.load(), this.load()]
  }

  load() {
    const id = `page ${this.#loads++}`
    const page = { id, alive: true }
    // What a page that is gone still wants to store is never stored.
    const storage: KeyStorage = {
      getItem: async (name) => (page.alive ? await this.#storage.getItem(name) : await never()),
      setItem: async (name, value) => (page.alive ? this.#storage.setItem(name, value) : await never()),
      removeItem: async (name) => (page.alive ? this.#storage.removeItem(name) : await never()),
    }
    // The answer takes its time on the way.
    const status = async (key: string) => {
      const told = page.alive ? this.#status(key) : await never()
      for (let n = 0; n < 200; n++) await null
      return told
    }
    const around = { navigator: { locks: this.#locks.of(id) } }
    const action = pendingIn(makeTab(around), 'checkout', { storage, user: 'usr_1', status })
    const end = () => {
      page.alive = false
    }
    return { ...page, action, end }
  }

  #status(key: string): KeyStatus {
    if (this.#statusIsAway) throw new Error('away')
    const executed = this.#executed.get(key)
    if (executed !== undefined) this.#hear(key)
    const told = executed === undefined ? 'unknown' : executed ? 'yes' : 'no'
    const state = executed === undefined ? 'none' : 'completed'
    return { key, state, executed: told, status: null, location: null, detail: '' }
  }

  /** Both rules, at the only moment at which they can be broken. */
  #arrive({ key, resumed }: ActionTurn, payload: string): void {
    expect(this.#payloads.get(key) ?? payload, 'one key for two payloads').toBe(payload)
    const others = [...this.#unsettled].filter((other) => other !== key)
    expect(others, 'two keys while one is unsettled').toEqual([])
    if (this.#unsettled.has(key)) expect(resumed).toBe(true)
    this.#payloads.set(key, payload)
    if (!this.#heard.has(key)) this.#unsettled.add(key)
  }

  #hear(key: string): void {
    this.#heard.add(key)
    this.#unsettled.delete(key)
  }

  #send(turn: ActionTurn, payload: string, fate: Fate): { status: number } {
    const { key } = turn
    this.#arrive(turn, payload)
    const before = this.#executed.get(key)
    if (fate === 'mistake') throw new Error('a mistake of the page')
    if (fate === 'request lost') throw new OutcomeUnknown({ code: 'no_answer', key })
    if (fate === 'offline') {
      if (turn.resumed) throw new OutcomeUnknown({ code: 'offline', key })
      this.#unsettled.delete(key)
      throw new NotExecuted({ code: 'offline', key })
    }
    const executed = before ?? fate !== 'declined'
    this.#executed.set(key, executed)
    if (fate === 'answer lost') throw new OutcomeUnknown({ code: 'no_answer', key })
    this.#hear(key)
    if (fate === 'reply not kept' && executed) throw new Executed({ code: 'reply_not_kept', key })
    return { status: executed ? 201 : 402 }
  }

  async #tap(tab: number, payload: string, fate: Fate): Promise<string | null> {
    let sent: string | null = null
    const run = this.#pages[tab]!.action.run({ payload }, async (turn) => {
      sent = turn.key
      return this.#send(turn, payload, fate)
    })
    await run.catch(throwBroken)
    return sent
  }

  #reload(tab: number): void {
    const page = this.#pages[tab]!
    page.end()
    this.#locks.close(page.id)
    this.#pages[tab] = this.load()
  }

  async run(command: Command): Promise<void> {
    switch (command.kind) {
      case 'tap':
        await this.#tap(command.tab, command.payload, command.fate)
        return
      case 'taps': {
        const { payloads, fate } = command
        const before = this.#charges()
        await Promise.all(payloads.map((payload, n) => this.#tap(n % 2, payload, fate)))
        // Taps at one moment are one action, or two of which the second was told.
        expect(this.#charges() - before).toBeLessThanOrEqual(1)
        return
      }
      case 'crash': {
        let sent = () => {}
        const arrived = new Promise<void>((resolve) => {
          sent = resolve
        })
        const { payload, executed } = command
        const run = this.#pages[command.tab]!.action.run({ payload }, async (turn) => {
          this.#arrive(turn, payload)
          if (executed) this.#executed.set(turn.key, this.#executed.get(turn.key) ?? true)
          sent()
          return await never()
        })
        await Promise.race([arrived, run.catch(throwBroken)])
        this.#reload(command.tab)
        return
      }
      case 'reload':
        this.#reload(command.tab)
        if (command.resume) await this.#pages[command.tab]!.action.resume()
        return
      case 'meanwhile': {
        // One tab asks what is unsettled while the other one taps, and once more.
        const { tab, taps } = command
        const tapAll = async () => {
          for (const [payload, fate] of taps) await this.#tap(1 - tab, payload, fate)
        }
        await Promise.all([this.#pages[tab]!.action.resume(), tapAll()])
        return
      }
      default:
        return command satisfies never
    }
  }

  #charges(): number {
    return [...this.#executed.values()].filter(Boolean).length
  }
}

/** What the script does not say is a broken rule. */
function throwBroken(thrown: unknown): void {
  if ((thrown as Error).name === 'AssertionError') throw thrown
}

const never = () => new Promise<never>(() => {})

it('has never two keys for one unsettled payload, and never one key for two payloads', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(command, { minLength: 1, maxLength: 14 }),
      fc.boolean(),
      async (commands, away) => {
        const world = new World(away)
        for (const command of commands) await world.run(command)
      },
    ),
    { numRuns: 300 },
  )
})
