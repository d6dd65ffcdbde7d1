import { connect, type Socket } from 'node:net'
import { BackendReader } from './backend-reader.ts'
import { type Cut, chooseCut } from './commit-cut.ts'
import { type ActiveFault, type DelayBytes, type Direction, touches, type Way } from './faults.ts'
import { type CommitPiece, type FrontendPiece, FrontendReader } from './frontend-reader.ts'
import { Lane } from './lane.ts'
import { TESTING_LIMITS } from './limits.ts'
import type { ConnectionState, ProxyFacts } from './proxy-facts.ts'
import type { Random } from './random.ts'
import { resetSocket } from './socket.ts'
import { Strike } from './strike.ts'

export interface LinkContext {
  readonly id: number
  readonly target: { readonly host: string; readonly port: number }
  readonly random: Random
  readonly facts: ProxyFacts
  /** The fault of the proxy at this moment. */
  readonly active: () => ActiveFault | null
}

/** One connection from a client through the proxy to the server, and what the fault does to it. */
export class Link {
  readonly id: number
  readonly closed: Promise<void>
  bytesToServer = 0
  bytesToClient = 0
  commitsSeen = 0

  #state: ConnectionState = 'connecting'
  readonly #context: LinkContext
  readonly #client: Socket
  readonly #server: Socket
  readonly #lanes: Readonly<Record<Way, Lane>>
  readonly #frontend = new FrontendReader()
  readonly #backend = new BackendReader()
  // Each kind of choice has its own stream: how many delays were drawn must not change where a COMMIT is cut.
  readonly #armRandom: Random
  readonly #commitRandom: Random
  readonly #delayRandom: Random
  #delay: DelayBytes | null = null
  #strike: Strike | null = null
  /** The direction that was ended while the other goes on. */
  #halfClosed: Way | null = null
  #pendingCut: { readonly answersExpected: number; readonly timer: NodeJS.Timeout } | null = null

  constructor(client: Socket, context: LinkContext) {
    this.id = context.id
    this.#context = context
    this.#client = client
    this.#server = connect({ ...context.target, allowHalfOpen: true, noDelay: true })
    this.#lanes = { to_server: new Lane(client, this.#server), to_client: new Lane(this.#server, client) }
    this.#armRandom = context.random.fork(0)
    this.#commitRandom = context.random.fork(1)
    this.#delayRandom = context.random.fork(2)
    this.closed = this.#listen()
  }

  get state(): ConnectionState {
    return this.#state
  }

  /** Takes up the fault that is set now, in place of the one before. */
  arm(active: ActiveFault | null): void {
    this.#delay = null
    this.#strike = null
    if (active === null || this.#state === 'connecting' || this.#isOver()) return
    const { fault } = active
    switch (fault.kind) {
      case 'cut_at_commit': // drawn anew at every COMMIT
      case 'refuse': // decided before there is a link
        return
      case 'black_hole':
        if (this.#state === 'relaying' && active.draw(this.#armRandom) && active.take()) {
          this.#fallSilent(fault.direction ?? 'both')
        }
        return
      case 'delay':
        if (active.draw(this.#armRandom) && active.take()) this.#delay = fault
        return
      case 'truncate':
        if (active.draw(this.#armRandom)) this.#strike = new Strike(active, fault)
        return
      case 'reset':
        if (!active.draw(this.#armRandom)) return
        if ((fault.afterBytes ?? 0) > 0) this.#strike = new Strike(active, fault)
        else if (active.take()) this.#reset()
        return
      case 'half_close':
        if (this.#state !== 'relaying' || !active.draw(this.#armRandom)) return
        if ((fault.afterBytes ?? 0) > 0) this.#strike = new Strike(active, fault)
        else if (active.take()) this.#halfClose(fault.direction ?? 'to_server')
        return
      default:
        fault satisfies never
    }
  }

  destroy(): void {
    this.#finish()
    this.#client.destroy()
    this.#server.destroy()
  }

  #listen(): Promise<void> {
    const client = this.#client
    const server = this.#server
    // An error is always followed by 'close', which says whether there was one.
    for (const socket of [client, server]) socket.on('error', () => {})
    client.pause()
    server.once('connect', () => this.#connected())
    client.on('data', (bytes: Buffer) => this.#fromClient(bytes))
    server.on('data', (bytes: Buffer) => this.#fromServer(bytes))
    client.on('end', () => this.#clientEnded())
    server.on('end', () => this.#serverEnded())
    client.on('close', (hadError) => this.#clientClosed(hadError))
    server.on('close', (hadError) => this.#serverClosed(hadError))
    const both = [client, server].map((socket) => new Promise((resolve) => socket.once('close', resolve)))
    return Promise.all(both).then(() => this.#finish())
  }

  #connected(): void {
    if (this.#isOver()) return
    this.#state = 'relaying'
    this.#context.facts.note({ kind: 'connected', connection: this.id })
    this.arm(this.#context.active())
    if (!this.#lanes.to_server.silent && !this.#isOver()) this.#client.resume()
  }

  #isOver(): boolean {
    return this.#state === 'cut' || this.#state === 'awaiting_answer'
  }

  // From the client to the server.

  #fromClient(chunk: Buffer): void {
    if (this.#isOver() || this.#lanes.to_server.silent) return
    const wasUnreadable = this.#frontend.unreadable
    const pieces = this.#frontend.push(chunk)
    if (this.#frontend.unreadable && !wasUnreadable) {
      this.#context.facts.note({ kind: 'unreadable', connection: this.id })
    }
    this.#forward(pieces)
  }

  #forward(pieces: readonly FrontendPiece[]): void {
    for (const piece of pieces) {
      if (piece.kind === 'commit') this.#commit(piece)
      else this.#relay('to_server', piece.bytes)
      if (this.#isOver()) return
    }
  }

  #clientEnded(): void {
    if (this.#isOver() || this.#lanes.to_server.silent) return
    this.#forward(this.#frontend.flush())
    if (!this.#isOver()) this.#lanes.to_server.end(this.#delayOf('to_server'))
  }

  #clientClosed(hadError: boolean): void {
    if (hadError && !this.#isOver() && !this.#lanes.to_server.silent) resetSocket(this.#server)
  }

  // From the server to the client.

  #fromServer(chunk: Buffer): void {
    this.#backend.push(chunk, this.#frontend.negotiations)
    if (this.#pendingCut !== null && this.#backend.answers >= this.#pendingCut.answersExpected) {
      this.#answered()
    }
    if (this.#isOver() || this.#lanes.to_client.silent) return
    this.#relay('to_client', chunk)
  }

  #serverEnded(): void {
    if (this.#pendingCut !== null) this.#answered()
    if (!this.#isOver() && !this.#lanes.to_client.silent)
      this.#lanes.to_client.end(this.#delayOf('to_client'))
  }

  #serverClosed(hadError: boolean): void {
    if (this.#state === 'connecting') {
      this.#finish()
      resetSocket(this.#client)
      this.#context.facts.note({ kind: 'unreachable', connection: this.id })
      return
    }
    if (this.#pendingCut !== null) this.#answered()
    if (hadError && !this.#isOver() && !this.#lanes.to_client.silent) resetSocket(this.#client)
  }

  // The faults.

  #relay(way: Way, bytes: Buffer): void {
    if (this.#halfClosed === way) return
    const strike = this.#strike
    const passingBytes = strike?.pass(way, bytes.length) ?? null
    if (strike === null || passingBytes === null) {
      this.#send(way, bytes)
      return
    }
    this.#send(way, bytes.subarray(0, passingBytes))
    const { kind } = strike.fault
    if (kind === 'reset') this.#reset()
    else if (kind === 'truncate') this.#truncate(way)
    else this.#halfClose(way)
  }

  #send(way: Way, bytes: Buffer): void {
    this.#lanes[way].send(bytes, this.#delayOf(way))
    this[way === 'to_server' ? 'bytesToServer' : 'bytesToClient'] += bytes.length
    this.#context.facts.addBytes(way, bytes.length)
  }

  #delayOf(way: Way): number {
    const delay = this.#delay
    if (delay === null || !touches(delay.direction, way)) return 0
    return delay.delayMs + this.#delayRandom.integer((delay.jitterMs ?? 0) + 1)
  }

  #fallSilent(direction: Direction): void {
    this.#state = 'black_holed'
    if (touches(direction, 'to_server')) this.#lanes.to_server.silence()
    if (touches(direction, 'to_client')) this.#lanes.to_client.silence()
    this.#context.facts.note({ kind: 'black_holed', connection: this.id })
  }

  #reset(): void {
    this.#finish()
    resetSocket(this.#client)
    resetSocket(this.#server)
    this.#context.facts.note({ kind: 'reset', connection: this.id })
  }

  #truncate(way: Way): void {
    this.#state = 'cut'
    const [reader, writer] = way === 'to_client' ? [this.#client, this.#server] : [this.#server, this.#client]
    // The reader is not destroyed: that would reset it if it had sent more, and it would lose the bytes before.
    this.#lanes[way].end()
    reader.resume()
    writer.destroy()
    this.#context.facts.note({ kind: 'truncated', connection: this.id })
  }

  #halfClose(way: Way): void {
    this.#state = 'half_closed'
    this.#halfClosed = way
    this.#lanes[way].end(this.#delayOf(way))
    this.#context.facts.note({ kind: 'half_closed', connection: this.id })
  }

  #commit(piece: CommitPiece): void {
    this.commitsSeen += 1
    this.#context.facts.note({ kind: 'commit_seen', connection: this.id })
    const active = this.#context.active()
    if (active?.fault.kind !== 'cut_at_commit' || !active.draw(this.#commitRandom) || !active.take()) {
      this.#relay('to_server', piece.bytes)
      return
    }
    this.#cut(chooseCut(active.fault, piece, this.#commitRandom), piece.answersExpected)
  }

  #cut(cut: Cut, answersExpected: number): void {
    this.#send('to_server', cut.bytes)
    if (cut.serverCloses === 'after_answer') {
      this.#state = 'awaiting_answer'
      const timer = setTimeout(() => this.#answered(), TESTING_LIMITS.answerWaitMaxMs)
      this.#pendingCut = { answersExpected, timer }
      return
    }
    this.#state = 'cut'
    resetSocket(this.#client)
    // Not before the last bytes are out: they are what this fault is about.
    this.#server.once('finish', () => this.#server.destroy())
    this.#lanes.to_server.end()
    const { when, serverCloses } = cut
    this.#context.facts.note({ kind: 'commit_cut', connection: this.id, when, serverCloses })
  }

  #answered(): void {
    this.#finish()
    resetSocket(this.#client)
    this.#server.destroy()
    this.#context.facts.note({
      kind: 'commit_cut',
      connection: this.id,
      when: 'after',
      serverCloses: 'after_answer',
    })
  }

  /** No timer and no queue outlives the connection. */
  #finish(): void {
    this.#state = 'cut'
    if (this.#pendingCut !== null) clearTimeout(this.#pendingCut.timer)
    this.#pendingCut = null
    this.#lanes.to_server.close()
    this.#lanes.to_client.close()
  }
}
