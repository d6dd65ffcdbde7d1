import { Executed, NotExecuted, OutcomeUnknown } from '../errors.ts'
import { refuseUnknown } from '../names.ts'
import type { KeyStatus } from '../status.ts'
import { randomKey } from '../uuid.ts'
import { sha256 } from './sha256.ts'
import { type KeyStorage, usualStorage } from './storage.ts'
import { type Tab, thisTab } from './tab.ts'

export interface PendingActionOptions {
  /** Who is signed in. Another user never gets the key of this one. Null is a guest. */
  readonly user: string | null | (() => string | null)
  /**
   * Where the key is kept until its outcome is known.
   *
   * @default sessionStorage; where there is none, memory
   */
  readonly storage?: KeyStorage
  /**
   * Asks the server what became of a key, for example `status` of a client. Without it an edited payload waits until the caller calls `settle`.
   *
   * @default none
   */
  readonly status?: (key: string) => Promise<KeyStatus>
  /**
   * Makes a key, for example by asking the server for one.
   *
   * @default a random UUID
   */
  readonly makeKey?: () => string | Promise<string>
}

/** What the function of `run` is given. */
export interface ActionTurn {
  readonly key: string
  /** Whether the key may have been sent before: pass it on to the client. */
  readonly resumed: boolean
}

/** What `resume` has found. */
export interface Unsettled {
  readonly key: string
  /** Null where it could not be asked for. */
  readonly status: KeyStatus | null
}

/** An action whose key outlives a click, a reload, a crash of the page, and is shared by tabs. */
export interface PendingAction {
  /**
   * Sends the action. The same payload gets the key that it had, until its outcome is known; two clicks share one flight. Another payload gets a
   * key of its own only after the first is known not to have been executed; else it is refused with `OutcomeUnknown` or `Executed`, and
   * nothing is sent. The outcome counts as known when `send` resolves, so show it to the user there.
   *
   * @example
   * await checkout.run(order, async ({ key, resumed }) => {
   *   const response = await pay('/v1/payments', { method: 'POST', body: JSON.stringify(order), key, resumed })
   *   showReceipt(await response.json())
   * })
   */
  run<T>(payload: unknown, send: (turn: ActionTurn) => Promise<T>): Promise<T>
  /**
   * After a load: whether an action of this user is unsettled, and what the server knows of it. Nothing is sent again before `run` is called
   * with the payload.
   *
   * @example
   * const unsettled = await checkout.resume()
   * if (unsettled?.status?.executed === 'yes') showReceiptOf(unsettled.status.location)
   */
  resume(): Promise<Unsettled | null>
  /** The caller has found out by other means what became of the action. */
  settle(executed: 'yes' | 'no'): Promise<void>
}

/**
 * What is stored.
 *
 * - `open`: the key may have been sent, and its outcome is not known.
 * - `free`: the key was sent, and is proved not to have been executed. The same payload may use it again.
 * - `yes`, `no`: it has its outcome: it took effect, or was refused.
 */
interface Kept {
  readonly key: string
  readonly digest: string
  readonly state: 'open' | 'free' | 'yes' | 'no'
}

/** How long an outcome is kept for tabs that wait. */
const KEPT_MS = 10_000

const isSettled = ({ state }: Kept) => state === 'yes' || state === 'no'

/**
 * Keeps the key of an action until its outcome is known. `name` says what the action is about, such as `checkout:cart-42`.
 *
 * @example
 * const checkout = pendingAction('checkout:cart-42', { storage: localStorage, user: session.userId, status: pay.status })
 */
export function pendingAction(name: string, options: PendingActionOptions): PendingAction {
  return pendingIn(thisTab(), name, options)
}

/** The same, in a tab that is given. */
export function pendingIn(tab: Tab, name: string, options: PendingActionOptions): PendingAction {
  const { storage = usualStorage() } = options
  refuseUnknown('pendingAction', options, 'user storage status makeKey')
  if (options.user === undefined) throw new TypeError('pendingAction needs user: who is signed in, or null.')
  /** Neither the name nor the user can be read from it. */
  const itemOf = () => {
    const user = typeof options.user === 'function' ? options.user() : options.user
    return `onlyonce.${sha256(JSON.stringify([name, user])).slice(0, 32)}`
  }

  /** What is kept, here or in another tab: one that is open counts before all others. */
  async function read(item: string, waited: boolean): Promise<Kept | null> {
    try {
      const own = keptIn(await storage.getItem(item))
      if (own?.state === 'open') return own
      const others = (await tab.askOthers(item, storage)).map(keptIn)
      const open = others.find((kept) => kept?.state === 'open')
      // What this tab has waited for was sent by another one.
      return open ?? (waited ? (others[0] ?? own) : (own ?? others[0])) ?? null
    } catch (cause) {
      // There may be a key, and it cannot be read. To begin anew would be to guess.
      throw new OutcomeUnknown({ code: 'storage_failed', cause })
    }
  }

  const write = async (item: string, kept: Kept) => await storage.setItem(item, JSON.stringify(kept))

  /** Notes an outcome. Where that fails the key stays open, and the same payload gets the stored answer. */
  async function note(item: string, kept: Kept, state: Kept['state']): Promise<void> {
    await write(item, { ...kept, state }).catch(() => {})
    tab.tellOthers(item, JSON.stringify({ ...kept, state }), storage)
    if (state !== 'free') forgetLater(item, kept.key)
  }

  const ask = async (key: string) => (await options.status?.(key)) ?? null

  /** Asks for the outcome of a key that is open. Its caller has the turn. */
  async function learn(item: string, kept: Kept): Promise<KeyStatus | null> {
    const status = await ask(kept.key)
    if (status !== null && status.executed !== 'unknown') await note(item, kept, status.executed)
    return status
  }

  /** Does something with what is kept, while no other tab or click changes it. */
  async function inTurn(item: string, work: (kept: Kept | null) => unknown): Promise<void> {
    const { release } = await tab.turn(item)
    try {
      await work(await read(item, false).catch(() => null))
    } finally {
      release()
    }
  }

  /** Tabs that wait read an outcome at once. It is removed then, so that storages do not grow. */
  function forgetLater(item: string, key: string): void {
    const timer = setTimeout(() => {
      const forget = (kept: Kept | null) =>
        kept?.key === key && isSettled(kept) ? storage.removeItem(item) : undefined
      inTurn(item, forget).catch(() => {})
    }, KEPT_MS)
    // In Node.js: no process waits for that.
    ;(timer as { unref?(): void }).unref?.()
  }

  /** Another payload may not have a key while this one may have been executed. */
  async function giveWay(item: string, kept: Kept, waited: boolean): Promise<void> {
    const { key, state } = kept
    if (state === 'no' || state === 'free' || (state === 'yes' && !waited)) return
    if (state === 'yes') throw new Executed({ code: 'action_executed', key })
    const told = { code: 'action_pending', key, status: () => askOr(key) }
    const executed = await learn(item, kept).then(
      (status) => status?.executed,
      (cause) => {
        throw new OutcomeUnknown({ ...told, cause })
      },
    )
    if (executed === 'yes') throw new Executed({ code: 'action_executed', key })
    if (executed !== 'no') throw new OutcomeUnknown(told)
  }

  async function askOr(key: string): Promise<KeyStatus> {
    if (options.status === undefined) throw new TypeError('Give pendingAction a status to ask for it.')
    return await options.status(key)
  }

  /** The key for a payload, noted before anything is sent with it. */
  async function take(
    item: string,
    text: string,
    waited: boolean,
  ): Promise<{ kept: Kept; resumed: boolean }> {
    const before = await read(item, waited)
    const same = before !== null && before.digest === digestOf(before.key, text)
    if (before !== null && !same) await giveWay(item, before, waited)
    // A click that came while another one was at work means the same action, also where that one has its outcome by now.
    if (same && (before.state === 'open' || before.state === 'free' || waited)) {
      const kept: Kept = { ...before, state: 'open' }
      const resumed = before.state !== 'free'
      // Also where it is open already: it may be kept by another tab alone.
      await write(item, kept).catch((cause) => refuse(before.key, resumed, cause))
      return { kept, resumed }
    }
    const making = async () => (await options.makeKey?.()) ?? randomKey()
    const key = await making().catch((cause) => {
      throw new NotExecuted({ code: 'no_key', cause })
    })
    const kept: Kept = { key, digest: digestOf(key, text), state: 'open' }
    await write(item, kept).catch((cause) => refuse(key, false, cause))
    return { kept, resumed: false }
  }

  async function runAlone<T>(item: string, text: string, send: (turn: ActionTurn) => Promise<T>): Promise<T> {
    const { waited, release } = await tab.turn(item)
    try {
      const { kept, resumed } = await take(item, text, waited)
      try {
        const value = await send({ key: kept.key, resumed })
        await note(item, kept, isRefusal(value) ? 'no' : 'yes')
        return value
      } catch (failed) {
        if (failed instanceof NotExecuted) await note(item, kept, 'free')
        if (failed instanceof Executed) await note(item, kept, 'yes')
        throw failed
      }
    } finally {
      release()
    }
  }

  return {
    run<T>(payload: unknown, send: (turn: ActionTurn) => Promise<T>): Promise<T> {
      const item = itemOf()
      const text = textOf(payload)
      const flight = `${item}.${sha256(text)}`
      const known = tab.flights.get(flight)
      if (known !== undefined) return known as Promise<T>
      const begun = runAlone(item, text, send).finally(() => tab.flights.delete(flight))
      tab.flights.set(flight, begun)
      return begun
    },
    async resume() {
      const item = itemOf()
      const kept = await read(item, false)
      if (kept?.state !== 'open') return null
      const { key } = kept
      const status = await ask(key).catch(() => null)
      const executed = status?.executed ?? 'unknown'
      if (executed !== 'unknown') {
        // Another tab may have gone on meanwhile. The page need not wait for it.
        const settle = (now: Kept | null) =>
          now?.key === key && now.state === 'open' ? note(item, now, executed) : undefined
        inTurn(item, settle).catch(() => {})
      }
      return { key, status }
    },
    async settle(executed) {
      const item = itemOf()
      await inTurn(item, (kept) => (kept === null ? storage.removeItem(item) : note(item, kept, executed)))
    },
  }
}

function refuse(key: string, resumed: boolean, cause: unknown): never {
  const facts = { code: 'storage_failed', key, cause }
  throw resumed ? new OutcomeUnknown(facts) : new NotExecuted(facts)
}

function keptIn(text: string | null): Kept | null {
  const kept = text === null ? null : (JSON.parse(text) as Kept)
  if (kept !== null && typeof kept.key !== 'string') throw new TypeError('There is no key in it.')
  return kept
}

/** The key is in it, so that two users with one payload have two digests. */
const digestOf = (key: string, text: string) => sha256(`${key}.${text}`)

/** An answer with a status of 400 and more: the action has ended, and nothing came of it. */
function isRefusal(value: unknown): boolean {
  const answer = value as { status?: unknown; response?: { status?: unknown } } | null | undefined
  const status = answer?.response?.status ?? answer?.status
  return typeof status === 'number' && status >= 400
}

/** The payload as text: the same for the same members in another order. What has no text of its own would look like anything else. */
function textOf(payload: unknown): string {
  const text = JSON.stringify(payload, (_, value: unknown) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const prototype = Object.getPrototypeOf(value) as object | null
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
      throw new TypeError('A payload is made of JSON values. Pass the bytes of anything else as a text.')
    }
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
  if (text === undefined) throw new TypeError('A payload is a JSON value.')
  return text
}
