import type { CommitCut, ServerCloses, Way } from './faults.ts'
import { Waiters, type WaitOptions } from './waiters.ts'

/** Where a connection through a fault proxy stands. */
export type ConnectionState =
  | 'connecting'
  | 'relaying'
  /** At least one direction relays nothing any more. */
  | 'black_holed'
  /** One direction was ended; the other goes on. */
  | 'half_closed'
  /** A COMMIT was forwarded; the client is cut off when the server has answered. */
  | 'awaiting_answer'
  /** Cut off; what still arrives is dropped. */
  | 'cut'

/**
 * Something that happened at a fault proxy. `connection` is the number of the connection, counted from 1.
 *
 * @example
 * const cut = await proxy.once('commit_cut')
 * console.log(cut.connection, cut.when)
 */
export type ProxyEvent =
  | { readonly kind: 'connected'; readonly connection: number }
  | { readonly kind: 'refused'; readonly connection: number }
  /** The server could not be reached; the client was reset. */
  | { readonly kind: 'unreachable'; readonly connection: number }
  /** What the client sends is encrypted or not PostgreSQL: its COMMITs cannot be seen. */
  | { readonly kind: 'unreadable'; readonly connection: number }
  | { readonly kind: 'commit_seen'; readonly connection: number }
  | {
      readonly kind: 'commit_cut'
      readonly connection: number
      readonly when: CommitCut
      /** Null unless the COMMIT was forwarded whole. */
      readonly serverCloses: ServerCloses | null
    }
  | { readonly kind: 'reset'; readonly connection: number }
  | { readonly kind: 'truncated'; readonly connection: number }
  | { readonly kind: 'black_holed'; readonly connection: number }
  | { readonly kind: 'half_closed'; readonly connection: number }
  | { readonly kind: 'closed'; readonly connection: number }

/** What a fault proxy has counted so far. */
export interface ProxyStats {
  /** All that were accepted, the refused ones included. */
  readonly connections: number
  readonly connectionsOpen: number
  readonly connectionsRefused: number
  readonly connectionsUnreachable: number
  readonly connectionsUnreadable: number
  readonly connectionsReset: number
  readonly connectionsTruncated: number
  readonly connectionsBlackHoled: number
  readonly connectionsHalfClosed: number
  readonly commitsSeen: number
  readonly commitsCut: Readonly<Record<CommitCut, number>>
  /** Bytes handed on to the server, and to the client. */
  readonly bytesToServer: number
  readonly bytesToClient: number
}

type Writable<T> = {
  -readonly [K in keyof T]: T[K] extends number ? T[K] : { -readonly [L in keyof T[K]]: T[K][L] }
}

/** Counts what happens and tells those who wait for it. */
export class ProxyFacts {
  readonly #events = new Waiters<ProxyEvent>()
  readonly #snapshots = new Waiters<ProxyStats>()
  readonly #stats: Writable<ProxyStats> = {
    connections: 0,
    connectionsOpen: 0,
    connectionsRefused: 0,
    connectionsUnreachable: 0,
    connectionsUnreadable: 0,
    connectionsReset: 0,
    connectionsTruncated: 0,
    connectionsBlackHoled: 0,
    connectionsHalfClosed: 0,
    commitsSeen: 0,
    commitsCut: { before: 0, after: 0, within: 0 },
    bytesToServer: 0,
    bytesToClient: 0,
  }

  get stats(): ProxyStats {
    return { ...this.#stats, commitsCut: { ...this.#stats.commitsCut } }
  }

  /** Gives the next connection its number. */
  accept(): number {
    this.#stats.connectionsOpen += 1
    this.#stats.connections += 1
    return this.#stats.connections
  }

  addBytes(way: Way, count: number): void {
    this.#stats[way === 'to_server' ? 'bytesToServer' : 'bytesToClient'] += count
    this.#publish()
  }

  note(event: ProxyEvent): void {
    this.#count(event)
    this.#events.offer(event)
    this.#publish()
  }

  once<K extends ProxyEvent['kind']>(
    kind: K,
    options?: WaitOptions,
  ): Promise<Extract<ProxyEvent, { kind: K }>> {
    const event = this.#events.wait(
      (candidate) => candidate.kind === kind,
      () => `the event ${kind}`,
      options,
    )
    return event as Promise<Extract<ProxyEvent, { kind: K }>>
  }

  waitFor(predicate: (stats: ProxyStats) => boolean, options?: WaitOptions): Promise<ProxyStats> {
    const present = this.stats
    if (predicate(present)) return Promise.resolve(present)
    const what = () => `${predicate} with ${JSON.stringify(this.#stats)}`
    return this.#snapshots.wait(predicate, what, options)
  }

  close(): void {
    this.#events.close()
    this.#snapshots.close()
  }

  #publish(): void {
    if (this.#snapshots.size > 0) this.#snapshots.offer(this.stats)
  }

  #count(event: ProxyEvent): void {
    const stats = this.#stats
    switch (event.kind) {
      case 'connected':
        return
      case 'refused':
        stats.connectionsRefused += 1
        return
      case 'unreachable':
        stats.connectionsUnreachable += 1
        return
      case 'unreadable':
        stats.connectionsUnreadable += 1
        return
      case 'commit_seen':
        stats.commitsSeen += 1
        return
      case 'commit_cut':
        stats.commitsCut[event.when] += 1
        return
      case 'reset':
        stats.connectionsReset += 1
        return
      case 'truncated':
        stats.connectionsTruncated += 1
        return
      case 'black_holed':
        stats.connectionsBlackHoled += 1
        return
      case 'half_closed':
        stats.connectionsHalfClosed += 1
        return
      case 'closed':
        stats.connectionsOpen -= 1
        return
      default:
        event satisfies never
    }
  }
}
