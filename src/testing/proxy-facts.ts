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
      readonly server_closes: ServerCloses | null
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
  readonly connections_open: number
  readonly connections_refused: number
  readonly connections_unreachable: number
  readonly connections_unreadable: number
  readonly connections_reset: number
  readonly connections_truncated: number
  readonly connections_black_holed: number
  readonly connections_half_closed: number
  readonly commits_seen: number
  readonly commits_cut: Readonly<Record<CommitCut, number>>
  /** Bytes handed on to the server, and to the client. */
  readonly bytes_to_server: number
  readonly bytes_to_client: number
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
    connections_open: 0,
    connections_refused: 0,
    connections_unreachable: 0,
    connections_unreadable: 0,
    connections_reset: 0,
    connections_truncated: 0,
    connections_black_holed: 0,
    connections_half_closed: 0,
    commits_seen: 0,
    commits_cut: { before: 0, after: 0, within: 0 },
    bytes_to_server: 0,
    bytes_to_client: 0,
  }

  get stats(): ProxyStats {
    return { ...this.#stats, commits_cut: { ...this.#stats.commits_cut } }
  }

  /** Gives the next connection its number. */
  accept(): number {
    this.#stats.connections_open += 1
    this.#stats.connections += 1
    return this.#stats.connections
  }

  addBytes(way: Way, count: number): void {
    this.#stats[`bytes_${way}`] += count
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
        stats.connections_refused += 1
        return
      case 'unreachable':
        stats.connections_unreachable += 1
        return
      case 'unreadable':
        stats.connections_unreadable += 1
        return
      case 'commit_seen':
        stats.commits_seen += 1
        return
      case 'commit_cut':
        stats.commits_cut[event.when] += 1
        return
      case 'reset':
        stats.connections_reset += 1
        return
      case 'truncated':
        stats.connections_truncated += 1
        return
      case 'black_holed':
        stats.connections_black_holed += 1
        return
      case 'half_closed':
        stats.connections_half_closed += 1
        return
      case 'closed':
        stats.connections_open -= 1
        return
      default:
        event satisfies never
    }
  }
}
