import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Overrides } from './overrides.ts'
import { seemConnected, seemGone } from './pretence.ts'

/**
 * Keeps a client that hangs up from ending the work. Node would throw away the body that the handler has not read yet,
 * and a stream that is piped into the response would stop where it is: the work would stand still, or fail for a reason
 * that has nothing to do with it. Until the shield is lifted the two look as if the client were still there; then
 * they are told what happened.
 */
export class Shield {
  readonly #asksSocket: boolean
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #onResponse: Overrides
  #onRequest: Overrides | null = null
  #unshield = () => {}
  #raised = false
  #destroyedWith: { readonly error: Error | undefined } | null = null
  #isGone = false
  #whenGone = () => {}

  /** `asksSocket`: the framework asks the socket of the response whether its client is there. */
  constructor(request: IncomingMessage, response: ServerResponse, asksSocket = false) {
    this.#asksSocket = asksSocket
    this.#request = request
    this.#response = response
    this.#onResponse = new Overrides(response)
  }

  /** Whether the client has hung up meanwhile. */
  get clientIsGone(): boolean {
    return this.#isGone
  }

  /** Called when the client hangs up from now on. */
  whenGone(call: () => void): void {
    this.#whenGone = call
  }

  raise(): void {
    if (this.#raised) return
    this.#raised = true
    // A property of its own now, as it would become anyway: set later, it would come after what is put on here.
    this.#response.statusCode = this.#response.statusCode as number
    const { destroyed, closed, emit } = this.#response
    const { destroy, socket } = this.#request
    this.#isGone = destroyed || closed
    // Assigned there and back: by now a request has properties that came later than others of ours (see Overrides).
    this.#request.destroy = (error?: Error) => {
      // Read to its end it closes by itself, and the code that read it waits for that.
      if (this.#request.readableEnded) return Reflect.apply(destroy, this.#request, [error])
      this.#destroyedWith ??= { error }
      return this.#request
    }
    this.#unshield = () => {
      this.#request.destroy = destroy
    }
    // Express' body parser takes a request whose socket is gone for one without a body, and the handler would run so.
    // One that was read already, as Fastify's are, is left alone: properties like this one are dear.
    if (!this.#request.readableEnded) {
      this.#onRequest = new Overrides(this.#request)
      this.#onRequest.property('socket', () => (socket.readable ? socket : seemingOpen(socket)))
    }
    this.#onResponse.method('emit', (event: string, ...given: unknown[]) => {
      if (event !== 'close') return Reflect.apply(emit, this.#response, [event, ...given])
      this.#isGone = true
      // Node has noted it in the response just before.
      seemConnected(this.#response, this.#onResponse)
      this.#whenGone()
      return true
    })
    seemConnected(this.#response, this.#onResponse)
    if (this.#asksSocket) {
      const open = seemingOpen(socket)
      this.#onResponse.property('socket', () => open)
    }
  }

  lift(): void {
    if (!this.#raised) return
    this.#raised = false
    this.#unshield()
    this.#onRequest?.undo()
    this.#onResponse.undo()
    if (this.#isGone) seemGone(this.#response)
  }

  /** The two learn what happened while the shield was up. */
  tell(): void {
    if (this.#destroyedWith !== null) this.#request.destroy(this.#destroyedWith.error)
    if (this.#isGone) this.#response.emit('close')
  }
}

function seemingOpen(socket: Socket): Socket {
  return new Proxy(socket, {
    get(target, name) {
      if (name === 'readable' || name === 'writable') return true
      if (LISTENS.has(name)) return deafTo(target, name)
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

/** The methods by which others listen to a socket. */
const LISTENS: ReadonlySet<string | symbol> = new Set(['on', 'once', 'addListener', 'prependListener'])

/** Listens to everything but the end: of that, the two are told when the shield is lifted. */
function deafTo(socket: Socket, name: string | symbol) {
  return (event: string, listener: (...given: unknown[]) => void): Socket => {
    if (event !== 'close' && event !== 'error')
      Reflect.apply(Reflect.get(socket, name), socket, [event, listener])
    return socket
  }
}
