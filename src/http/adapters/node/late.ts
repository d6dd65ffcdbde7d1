import { type IncomingMessage, ServerResponse } from 'node:http'
import { Overrides } from './overrides.ts'
import { CHANGES, type Pretended, seemConnected, seemGone, tooLate } from './pretence.ts'

type Listener = (...given: unknown[]) => void

/** Who listened to a response before its handler ran: logs, metrics, and Node itself. */
export class Outer {
  readonly #listeners: Readonly<Record<string, readonly unknown[]>>

  constructor(response: ServerResponse) {
    this.#listeners = { finish: response.rawListeners('finish'), close: response.rawListeners('close') }
  }

  /** Those who came later: the handler itself, and streams that it pipes into the response. */
  inner(response: ServerResponse, event: 'finish' | 'close'): Listener[] {
    const outer = this.#listeners[event]!
    return (response.rawListeners(event) as Listener[]).filter((one) => !outer.includes(one))
  }
}

/** The methods that a handler writes with. */
const WRITES = ['writeHead', 'write', 'end', 'flushHeaders', 'destroy'] as const

/** What stands in their places now: ours, and before it what layers behind ours have put there. */
export type Writers = Readonly<Partial<Record<(typeof WRITES)[number], unknown>>>

export function writersOf(response: ServerResponse): Writers {
  const own = WRITES.filter((name) => Object.hasOwn(response, name))
  return Object.fromEntries(own.map((name) => [name, response[name]]))
}

/**
 * Lets a handler go on whose client was answered without it: what it writes is kept for the record. Status and headers are those of
 * a second response, which is never sent. The handler must not see that the first one is over: a stream that it pipes into the
 * response would stop where it is, and Express would close the connection, on which another request may be under way.
 */
export class LateResponse {
  readonly #response: ServerResponse
  readonly #pretended: Pretended
  readonly #outer: Outer
  readonly #overrides: Overrides
  /** As the handler has left its own response so far. */
  readonly #unsent: ServerResponse
  /** While others are told that the answer has left, they see that answer. */
  #telling = false

  /** To be made before the client is answered. */
  constructor(response: ServerResponse, status: number, pretended: Pretended, outer: Outer) {
    this.#response = response
    this.#pretended = pretended
    this.#outer = outer
    this.#overrides = new Overrides(response)
    this.#unsent = new ServerResponse(response.req)
    this.#unsent.statusCode = status
    for (const [name, value] of Object.entries(response.getHeaders())) {
      if (value !== undefined) this.#unsent.setHeader(name, value)
    }
  }

  /** To be called when the answer to the client has been written. */
  takeOver(writers: Writers): void {
    this.#tellOthersAlone()
    for (const [name, writer] of Object.entries(writers)) this.#overrides.method(name, writer)
    for (const name of READS) this.#forward(name, () => {})
    for (const name of CHANGES) {
      this.#forward(name, () => {
        if (this.#pretended.headersSent) throw tooLate(name)
      })
    }
    this.#show('statusCode', () => this.#unsent.statusCode)
    this.#show('statusMessage', () => this.#unsent.statusMessage)
    this.#show('headersSent', () => this.#pretended.headersSent)
    this.#show('writableEnded', () => this.#pretended.isEnded)
    keepConnection(this.#response.req, () => this.#response.destroy())
    if (this.#response.closed) this.#seemOpen()
  }

  /** The late reply is whole. The handler's own listeners are told, as if it had been sent. */
  tellHandler(): void {
    process.nextTick(() => {
      seemGone(this.#response)
      this.#response.finished = true
      for (const event of ['finish', 'close'] as const) {
        for (const listener of this.#outer.inner(this.#response, event))
          Reflect.apply(listener, this.#response, [])
      }
    })
  }

  #forward(name: (typeof READS | typeof CHANGES)[number], check: () => void): void {
    const response = this.#response
    const answered = response[name] as Listener
    this.#overrides.method(name, (...given: unknown[]) => {
      if (this.#telling) return Reflect.apply(answered, response, given)
      check()
      const result: unknown = Reflect.apply(this.#unsent[name] as Listener, this.#unsent, given)
      return result === this.#unsent ? response : result
    })
  }

  #show(name: 'statusCode' | 'statusMessage' | 'headersSent' | 'writableEnded', get: () => unknown): void {
    const answered = this.#response[name]
    Object.defineProperty(this.#response, name, {
      get: () => (this.#telling ? answered : get()),
      set: (value) => Object.assign(this.#unsent, { [name]: value }),
      configurable: true,
    })
  }

  #tellOthersAlone(): void {
    const response = this.#response
    const { emit } = response
    this.#overrides.method('emit', (event: string, ...given: unknown[]) => {
      if (event !== 'finish' && event !== 'close') return Reflect.apply(emit, response, [event, ...given])
      const inner = this.#outer.inner(response, event)
      for (const listener of inner) response.removeListener(event, listener)
      this.#telling = true
      try {
        return Reflect.apply(emit, response, [event, ...given])
      } finally {
        this.#telling = false
        for (const listener of inner) response.on(event, listener)
        if (event === 'close') this.#seemOpen()
      }
    })
  }

  /** Node is through with it. Streams ask for these before they go on. */
  #seemOpen(): void {
    seemConnected(this.#response, this.#overrides)
    this.#response.finished = false
  }
}

const READS = ['getHeader', 'getHeaders', 'getHeaderNames', 'hasHeader'] as const

/** A framework that cannot answer an error any more destroys the socket of its request: here only what it has begun to write. */
export function keepConnection(request: IncomingMessage, destroy: () => void): void {
  const { socket } = request
  if (!socket) return
  const kept = new Proxy(socket, {
    get(target, name) {
      if (name === 'destroy') return destroy
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  Object.defineProperty(request, 'socket', { get: () => kept, set: () => {}, configurable: true })
}
