import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** How the other side was seen to end: in order, by a reset, or not at all yet. */
export type Ending = 'open' | 'ended' | 'reset'

/** One end of a TCP connection that remembers what it saw, and lets a test wait for it. */
export class Peer {
  readonly socket: Socket
  received: Buffer = Buffer.alloc(0)
  ending: Ending = 'open'
  readonly #checks = new Set<() => void>()

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (bytes: Buffer) => {
      this.received = Buffer.concat([this.received, bytes])
      this.#changed()
    })
    socket.on('end', () => this.#end('ended'))
    socket.on('error', () => this.#end('reset'))
    socket.on('close', () => this.#changed())
  }

  send(...parts: (Buffer | string)[]): void {
    for (const part of parts) this.socket.write(part)
  }

  /** Waits until so many bytes have come in, and gives all that have. */
  async receive(countBytes: number): Promise<Buffer> {
    await this.until(() => this.received.length >= countBytes)
    return this.received
  }

  /** Waits for the end and tells which it was. */
  async finish(): Promise<Ending> {
    await this.until(() => this.ending !== 'open')
    return this.ending
  }

  until(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (!holds()) return
        this.#checks.delete(check)
        resolve()
      }
      this.#checks.add(check)
      check()
    })
  }

  #end(ending: Ending): void {
    this.ending = ending
    this.#changed()
  }

  #changed(): void {
    for (const check of [...this.#checks]) check()
  }
}

/** A server that does nothing of itself; a test takes its connections one by one. */
export class FakeServer {
  readonly peers: Peer[] = []
  readonly #server: Server
  #taken = 0
  #waiting: (() => void)[] = []

  constructor() {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      this.peers.push(new Peer(socket))
      for (const wake of this.#waiting.splice(0)) wake()
    })
  }

  async listen(): Promise<{ host: string; port: number }> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return { host: '127.0.0.1', port: (this.#server.address() as AddressInfo).port }
  }

  /** The next connection, in the order of their arrival. */
  async accept(): Promise<Peer> {
    const number = this.#taken
    this.#taken += 1
    while (this.peers[number] === undefined) await new Promise<void>((wake) => this.#waiting.push(wake))
    return this.peers[number]
  }

  async close(): Promise<void> {
    for (const peer of this.peers) peer.socket.destroy()
    this.#server.close()
    if (this.#server.listening) await once(this.#server, 'close')
  }
}

/** A client whose side of the connection ends only when the test says so. */
export async function openPeer(port: number): Promise<Peer> {
  const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true })
  const peer = new Peer(socket)
  await Promise.race([once(socket, 'connect'), peer.until(() => peer.ending === 'reset')])
  return peer
}
