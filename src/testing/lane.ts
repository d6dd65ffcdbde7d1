import type { Socket } from 'node:net'
import { TESTING_LIMITS } from './limits.ts'

interface Parcel {
  /** Null stands for the end of the stream, which waits its turn like everything else. */
  readonly bytes: Buffer | null
  readonly dueMs: number
}

/**
 * One direction of a connection: takes what was read from the source and writes it to the sink, in order,
 * each parcel after its delay. The source is paused while too much is waiting or the sink is full.
 */
export class Lane {
  readonly #source: Socket
  readonly #sink: Socket
  readonly #queue: Parcel[] = []
  #queuedBytes = 0
  #lastDueMs = 0
  #timer: NodeJS.Timeout | null = null
  #sinkFull = false
  #state: 'open' | 'silent' = 'open'

  constructor(source: Socket, sink: Socket) {
    this.#source = source
    this.#sink = sink
    sink.on('drain', () => {
      this.#sinkFull = false
      this.#steer()
    })
  }

  get silent(): boolean {
    return this.#state === 'silent'
  }

  send(bytes: Buffer, delayMs = 0): void {
    if (bytes.length > 0) this.#accept(bytes, delayMs)
  }

  /** Ends the sink after everything that was sent before. */
  end(delayMs = 0): void {
    this.#accept(null, delayMs)
  }

  /**
   * Relays nothing from now on, and reads nothing either: then the sender's FIN or RST is never seen, and its
   * buffers fill up as they would with a peer that is gone.
   */
  silence(): void {
    this.#state = 'silent'
    this.close()
    this.#source.pause()
  }

  /** Drops what is waiting. */
  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#queue.length = 0
    this.#queuedBytes = 0
  }

  #accept(bytes: Buffer | null, delayMs: number): void {
    if (this.silent) return
    // A later parcel never overtakes an earlier one, not even when the delay was switched off in between.
    const dueMs = Math.max(this.#lastDueMs, performance.now() + delayMs)
    this.#lastDueMs = dueMs
    if (this.#queue.length === 0 && delayMs === 0) {
      this.#deliver(bytes)
      return
    }
    this.#queue.push({ bytes, dueMs })
    this.#queuedBytes += bytes?.length ?? 0
    this.#steer()
    this.#schedule()
  }

  #schedule(): void {
    const first = this.#queue[0]
    if (first === undefined || this.#timer !== null) return
    this.#timer = setTimeout(() => this.#deliverDue(), Math.max(0, first.dueMs - performance.now()))
  }

  #deliverDue(): void {
    this.#timer = null
    const nowMs = performance.now()
    while (this.#queue[0] !== undefined && this.#queue[0].dueMs <= nowMs) {
      const { bytes } = this.#queue.shift()!
      this.#queuedBytes -= bytes?.length ?? 0
      this.#deliver(bytes)
    }
    this.#steer()
    this.#schedule()
  }

  #deliver(bytes: Buffer | null): void {
    if (!this.#sink.writable) return
    if (bytes === null) {
      this.#sink.end()
      return
    }
    this.#sinkFull = !this.#sink.write(bytes)
    this.#steer()
  }

  #steer(): void {
    if (this.silent) return
    const mustWait = this.#sinkFull || this.#queuedBytes >= TESTING_LIMITS.queueSizeMaxBytes
    if (mustWait) this.#source.pause()
    else if (this.#source.isPaused()) this.#source.resume()
  }
}
