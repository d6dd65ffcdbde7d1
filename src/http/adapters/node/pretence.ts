import { OutgoingMessage } from 'node:http'
import type { Overrides } from './overrides.ts'

/** What Node keeps in a response of HTTP/1.1, beside what it documents; `headersSent` and the like are read from it. */
interface Kept {
  _header: string | null
  _closed: boolean
  destroyed: boolean
}

/** How far a response seems to be, to code that looks at it while it is held back. */
export interface Pretended {
  readonly headersSent: boolean
  readonly isEnded: boolean
}

function keptOf(response: object): Kept | null {
  return response instanceof OutgoingMessage ? (response as unknown as Kept) : null
}

/**
 * Makes a response seem to be as far as its writer thinks. Node's own notes are changed where there are any: then its
 * methods refuse late headers by themselves. A response of HTTP/2 gets properties in front of its own.
 */
export function pretend(response: object, pretended: Pretended, overrides: Overrides): void {
  if (keptOf(response) !== null) return
  overrides.property('headersSent', () => pretended.headersSent)
  overrides.property('writableEnded', () => pretended.isEnded)
  overrides.property('finished', () => pretended.isEnded)
  // A header that comes after them would be sent now, and not be in the reply that is stored.
  for (const name of CHANGES) {
    const change = (response as Record<string, unknown>)[name]
    if (typeof change !== 'function') continue
    overrides.method(name, (...given: unknown[]) => {
      if (pretended.headersSent) throw tooLate(name)
      return Reflect.apply(change, response, given)
    })
  }
}

/** The methods that change headers. */
export const CHANGES = ['setHeader', 'appendHeader', 'removeHeader', 'setHeaders'] as const

/** What Node says itself, so that a framework's error handling knows it. */
export function tooLate(what: string): Error {
  const text = `Cannot ${what} after the headers were sent to the client`
  return Object.assign(new Error(text), { code: 'ERR_HTTP_HEADERS_SENT' })
}

export function seemSent(response: object): void {
  const kept = keptOf(response)
  if (kept !== null) kept._header ??= 'held back'
}

/**
 * To those who write, and to no others: a server that closes its idle connections asks `finished`, and would close one
 * whose answer is held back.
 */
export function seemEnded(response: object): void {
  if (keptOf(response) !== null) Object.defineProperty(response, 'writableEnded', ENDED)
}

const ENDED = { value: true, configurable: true } as const

/** Nothing has been sent yet, and Node knows it again. */
export function seemFresh(response: object): void {
  const kept = keptOf(response)
  if (kept === null) return
  kept._header = null
  if (Object.hasOwn(response, 'writableEnded')) Reflect.deleteProperty(response, 'writableEnded')
}

/** As if the client were still there. */
export function seemConnected(response: object, overrides: Overrides): void {
  const kept = keptOf(response)
  if (kept === null) {
    for (const name of ['destroyed', '_closed', 'closed']) overrides.property(name, () => false)
    return
  }
  kept.destroyed = false
  kept._closed = false
}

export function seemGone(response: object): void {
  const kept = keptOf(response)
  if (kept === null) return
  kept.destroyed = true
  kept._closed = true
}

/** On a response that was answered, and to which everything that a framework still writes goes nowhere. */
export const SILENCE = Symbol.for('onlyonce.silence')

export interface Silence {
  lifted: boolean
}

/** Lets a layer around the silenced one send its own answer: it has held the other one back. */
export function speaking(response: object, send: () => void): void {
  const silence = (response as { [SILENCE]?: Silence })[SILENCE]
  if (silence !== undefined) silence.lifted = true
  try {
    send()
  } finally {
    if (silence !== undefined) silence.lifted = false
  }
}
