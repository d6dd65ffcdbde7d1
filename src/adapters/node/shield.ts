import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Overrides } from './overrides.ts'
import { seemConnected, seemGone } from './pretence.ts'

/**
 * Keeps a client that hangs up from ending the work. Node would throw away the body that the handler has not read yet,
 * and a stream that is piped into the response would stop where it is: the work would stand still, or fail for a reason
 * that has nothing to do with it. Until the shield is lifted the two look as if the client were still there; then
 * they learn what happened.
 */
export class Shield {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #on_request: Overrides
  readonly #on_response: Overrides
  #raised = false
  #destroyed_with: { readonly error: Error | undefined } | null = null
  #is_gone = false

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request
    this.#response = response
    this.#on_request = new Overrides(request)
    this.#on_response = new Overrides(response)
  }

  /** Whether the client has hung up meanwhile. */
  get clientIsGone(): boolean {
    return this.#is_gone
  }

  raise(): void {
    if (this.#raised) return
    this.#raised = true
    const { destroyed, closed, emit } = this.#response
    const { destroy, socket } = this.#request
    this.#is_gone = destroyed || closed
    this.#on_request.method('destroy', (error?: Error) => {
      // Read to its end it closes by itself, and whoever read it waits for that.
      if (this.#request.readableEnded) return Reflect.apply(destroy, this.#request, [error])
      this.#destroyed_with ??= { error }
      return this.#request
    })
    // Express' body parser takes a request whose socket is gone for one without a body, and the handler would run so.
    this.#on_request.property('socket', () => (socket.readable ? socket : seemingOpen(socket)))
    this.#on_response.method('emit', (event: string, ...given: unknown[]) => {
      if (event !== 'close') return Reflect.apply(emit, this.#response, [event, ...given])
      this.#is_gone = true
      // Node has noted it in the response just before.
      seemConnected(this.#response, this.#on_response)
      return true
    })
    seemConnected(this.#response, this.#on_response)
  }

  lift(): void {
    if (!this.#raised) return
    this.#raised = false
    this.#on_request.undo()
    this.#on_response.undo()
    if (this.#destroyed_with !== null) this.#request.destroy(this.#destroyed_with.error)
    if (!this.#is_gone) return
    seemGone(this.#response)
    this.#response.emit('close')
  }
}

function seemingOpen(socket: Socket): Socket {
  return new Proxy(socket, {
    get(target, name) {
      if (name === 'readable' || name === 'writable') return true
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
