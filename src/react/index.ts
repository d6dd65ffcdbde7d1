/**
 * The second tap in React: a hook whose action keeps its key, and is not begun twice.
 *
 * @module
 */
import { useCallback, useEffect, useRef, useSyncExternalStore } from 'react'
import { OutcomeUnknown } from '../client/index.ts'
import { type ActionTurn, type PendingActionOptions, pendingAction } from '../client/keys/index.ts'

/**
 * How an action stands.
 *
 * - `idle`: not begun.
 * - `running`: under way. Another `run` changes nothing.
 * - `done`: it has its `result`.
 * - `unknown`: whether it was executed is not known. `run` with the same payload finds out.
 * - `failed`: `error` says why: it was not executed, or was executed before, or the page made a mistake.
 */
export type ActionState<T> =
  | { readonly state: 'idle' | 'running'; readonly result: undefined; readonly error: undefined }
  | { readonly state: 'done'; readonly result: T; readonly error: undefined }
  | { readonly state: 'unknown' | 'failed'; readonly result: undefined; readonly error: unknown }

/** What the hook returns. */
export type IdempotentAction<Payload, T> = ActionState<T> & {
  /** Begins the action, and resolves with how it ended. It never rejects. While the action is under way it returns what is under way. */
  readonly run: (payload: Payload) => Promise<ActionState<T>>
}

/** An action of this page, whichever components show it. */
interface Entry {
  shown: ActionState<unknown>
  flight: Promise<ActionState<unknown>> | null
  readonly listeners: Set<() => void>
}

const IDLE = { state: 'idle', result: undefined, error: undefined } as const
const RUNNING = { state: 'running', result: undefined, error: undefined } as const
/** Outcomes that no component has shown yet. The oldest is dropped first. */
const ENTRIES_MAX = 100

/** Of the page, not of a component: one that is unmounted while it pays and mounted again must find its payment. Copies of the package share it. */
function entriesOfPage(): Map<string, Entry> {
  const shared = globalThis as unknown as Record<symbol, Map<string, Entry> | undefined>
  const place = Symbol.for('onlyonce.react.actions.1')
  shared[place] ??= new Map()
  return shared[place]
}

function entryOf(id: string): Entry {
  const entries = entriesOfPage()
  const known = entries.get(id)
  if (known !== undefined) return known
  for (const [old, { flight, listeners }] of entries) {
    if (entries.size < ENTRIES_MAX) break
    if (flight === null && listeners.size === 0) entries.delete(old)
  }
  const made: Entry = { shown: IDLE, flight: null, listeners: new Set() }
  entries.set(id, made)
  return made
}

function listen(id: string, listener: () => void): () => void {
  const entry = entryOf(id)
  entry.listeners.add(listener)
  return () => {
    entry.listeners.delete(listener)
    // What was shown is forgotten with the last component; what was not shown waits for the next one. Strict Mode takes a component away and
    // back at once, which is no end.
    queueMicrotask(() => {
      if (entry.listeners.size === 0 && entry.flight === null) entriesOfPage().delete(id)
    })
  }
}

function show(entry: Entry, shown: ActionState<unknown>): void {
  entry.shown = shown
  for (const listener of entry.listeners) listener()
}

/** Begins what is not under way. No await stands between the look and the mark, so that two clicks of one moment begin one. */
function begin(id: string, work: () => Promise<unknown>): Promise<ActionState<unknown>> {
  const entry = entryOf(id)
  if (entry.flight !== null) return entry.flight
  const ended = async (): Promise<ActionState<unknown>> => {
    try {
      return { state: 'done', result: await work(), error: undefined }
    } catch (error) {
      return { state: isUnknown(error) ? 'unknown' : 'failed', result: undefined, error }
    }
  }
  entry.flight = ended().then((shown) => {
    entry.flight = null
    show(entry, shown)
    return shown
  })
  show(entry, RUNNING)
  return entry.flight
}

const isUnknown = (thrown: unknown) => (thrown as object) instanceof OutcomeUnknown

/**
 * An action that a second click, a reload and another tab do not begin twice. `fn` sends it, with the key that it is given; the key is kept by
 * `pendingAction`. Components with the same name and user share one action.
 *
 * @example
 * function PayButton() {
 *   const { run, state } = useIdempotentAction(
 *     `checkout:${cart.id}`,
 *     async (order: Order, { key, resumed }) => {
 *       const response = await pay('/v1/payments', { method: 'POST', body: JSON.stringify(order), key, resumed })
 *       return await response.json()
 *     },
 *     { user: session.userId, status: pay.status },
 *   )
 *   return <button disabled={state === 'running'} onClick={() => run(order)}>Pay</button>
 * }
 */
export function useIdempotentAction<Payload, T>(
  name: string,
  fn: (payload: Payload, turn: ActionTurn) => Promise<T>,
  options: PendingActionOptions,
): IdempotentAction<Payload, T> {
  const user = typeof options.user === 'function' ? options.user() : options.user
  const id = JSON.stringify([name, user])
  const latest = useRef({ fn, options })
  useEffect(() => {
    latest.current = { fn, options }
  })
  const subscribe = useCallback((listener: () => void) => listen(id, listener), [id])
  const shown = useSyncExternalStore(
    subscribe,
    () => entriesOfPage().get(id)?.shown ?? IDLE,
    () => IDLE,
  )
  const run = useCallback(
    (payload: Payload) => {
      const { fn, options } = latest.current
      const work = async () =>
        await pendingAction(name, { ...options, user }).run(payload, (turn) => fn(payload, turn))
      return begin(id, work) as Promise<ActionState<T>>
    },
    [id, name, user],
  )
  return { ...(shown as ActionState<T>), run }
}
