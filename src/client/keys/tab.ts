import { sleep } from '../clock.ts'
import { randomKey } from '../uuid.ts'
import type { KeyStorage } from './storage.ts'

/** A turn at an action. Tabs and clicks take turns, so that no two of them choose a key at once. */
export interface Turn {
  /** Whether another one was at work when this one was asked for. */
  readonly waited: boolean
  release(): void
}

type Held = (lock: object | null) => Promise<void> | undefined

interface Channel {
  postMessage(message: unknown): void
  onmessage: ((event: { data: unknown }) => void) | null
  unref?(): void
}

/** What a tab takes from its browser. Any of it may be missing. */
export interface Surroundings {
  readonly navigator?: {
    readonly locks?: { request(name: string, options: object, held: Held): Promise<unknown> } | null
  }
  readonly BroadcastChannel?: new (name: string) => Channel
  /** A storage that other tabs do not see. */
  readonly sessionStorage?: KeyStorage
}

/** How long other tabs have for an answer. They are in the same browser; one that does not answer is closed, or frozen. */
const ANSWER_MS = 60

/** Does this tab hold the action, or want it before the tab that asks? And what does it keep under this name? */
type Question = 'want' | 'read'

/** One page of a browser, or one process. */
export interface Tab {
  /** What is under way in this page, by action and payload. */
  readonly flights: Map<string, Promise<unknown>>
  /** Waits for all turns before this one, in this page and in other tabs. */
  turn(name: string): Promise<Turn>
  /** What other tabs keep under a name, where each tab has a storage of its own. */
  askOthers(name: string, storage: KeyStorage): Promise<string[]>
  /** Tells them what became of a key that they may keep too. */
  tellOthers(name: string, text: string, storage: KeyStorage): void
}

export function makeTab(around: Surroundings): Tab {
  const id = randomKey()
  /** The end of the last turn at each action in this page. */
  const ends = new Map<string, Promise<void>>()
  const wanted = new Set<string>()
  const held = new Set<string>()
  const hearers = new Set<(name: string, text: string) => void>()
  const own = around.sessionStorage
  const locks = around.navigator?.locks
  const channel = around.BroadcastChannel && new around.BroadcastChannel('onlyonce')

  async function answerTo(question: Question, name: string, from: string): Promise<string | null> {
    if (question === 'read') return (await own?.getItem(name)) ?? null
    // Of two that want it at once, the one with the lower id is first.
    return held.has(name) || (wanted.has(name) && id < from) ? 'held' : null
  }

  /** Another tab has settled a key. This one has it perhaps still in doubt. */
  async function learn(name: string, text: string): Promise<void> {
    const mine = (await own?.getItem(name)) ?? null
    if (mine !== null && keyIn(mine) === keyIn(text)) await own?.setItem(name, text)
  }

  if (channel !== undefined) {
    channel.onmessage = ({ data }) => {
      const [kind, name, from, text] = data as [Question | 'told' | 'note', string, string, string]
      if (kind === 'note') learn(name, text).catch(() => {})
      else if (kind !== 'told') {
        answerTo(kind, name, from).then(
          (told) => told !== null && channel.postMessage(['told', kind + name, id, told]),
          () => {},
        )
      }
      for (const hear of hearers) hear(kind + name, text)
    }
    // In the tests, which are processes of Node.js: it must not keep them alive.
    channel.unref?.()
  }

  /** The answers of other tabs. One is enough to know that an action is taken. */
  async function ask(question: Question, name: string): Promise<string[]> {
    const answers: string[] = []
    const waiting = new AbortController()
    const hear = (about: string, text: string) => {
      if (about !== `told${question}${name}`) return
      answers.push(text)
      if (question === 'want') waiting.abort()
    }
    hearers.add(hear)
    channel?.postMessage([question, name, id])
    await sleep(ANSWER_MS, waiting.signal)
    hearers.delete(hear)
    return answers
  }

  async function amongTabs(name: string): Promise<Turn> {
    // A page in a sandbox has locks, and may not use them.
    const locked = locks && (await lock(locks, name).catch(() => null))
    if (locked) return locked
    let waited = false
    for (; channel !== undefined; waited = true) {
      wanted.add(name)
      const taken = await ask('want', name)
      wanted.delete(name)
      if (taken.length === 0) break
      // The one at work may crash without a word, so it is asked again and again.
      await sleep(ANSWER_MS)
    }
    held.add(name)
    return { waited, release: () => held.delete(name) }
  }

  return {
    flights: new Map(),
    async turn(name) {
      const before = ends.get(name)
      let end = () => {}
      const mine = new Promise<void>((resolve) => {
        end = resolve
      })
      ends.set(name, mine)
      await before
      const free = () => {
        if (ends.get(name) === mine) ends.delete(name)
        end()
      }
      const taken = await amongTabs(name).catch((thrown) => {
        free()
        throw thrown
      })
      const release = () => {
        taken.release()
        free()
      }
      return { waited: taken.waited || before !== undefined, release }
    },
    askOthers: async (name, storage) =>
      channel !== undefined && storage === own ? await ask('read', name) : [],
    tellOthers: (name, text, storage) => storage === own && channel?.postMessage(['note', name, id, text]),
  }
}

const keyIn = (text: string) => (JSON.parse(text) as { key?: unknown }).key

/** The browser frees a lock when its tab closes or crashes. */
function lock(
  locks: NonNullable<NonNullable<Surroundings['navigator']>['locks']>,
  name: string,
): Promise<Turn> {
  return new Promise((resolve, reject) => {
    const request = (waited: boolean) => {
      const held: Held = (given) =>
        given === null ? request(true) : new Promise((release) => resolve({ waited, release }))
      locks.request(name, { ifAvailable: !waited }, held).catch(reject)
      return undefined
    }
    request(false)
  })
}

/** The one of this page, which all copies of the package share. */
export function thisTab(): Tab {
  const shared = globalThis as unknown as Surroundings & { location?: object } & Record<
      symbol,
      Tab | undefined
    >
  const place = Symbol.for('onlyonce.client.tab.1')
  const { navigator, BroadcastChannel } = shared
  let sessionStorage: KeyStorage | undefined
  try {
    sessionStorage = shared.sessionStorage
  } catch {
    // A page whose storage is blocked.
  }
  shared[place] ??= makeTab({
    ...(navigator && { navigator }),
    // Only a page has other tabs. Elsewhere an open channel would keep a process alive.
    ...(BroadcastChannel && shared.location && { BroadcastChannel }),
    ...(sessionStorage && { sessionStorage }),
  })
  return shared[place]
}
