import { OnlyonceError } from '../core/errors.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import type { Random } from './random.ts'

/** Which way the bytes go: from the client to the server, back, or both. */
export type Direction = 'to_server' | 'to_client' | 'both'

/** One of the two ways. */
export type Way = Exclude<Direction, 'both'>

/** How often a fault strikes. Without either field it always does. */
export interface Recurrence {
  /** At most so many times, over all connections; 1 means once. */
  readonly times?: number
  /** With this probability at each occasion, drawn from the proxy's seed. */
  readonly rate?: number
}

/** Where a COMMIT is cut off, as it was chosen. */
export type CommitCut = 'before' | 'after' | 'within'

/** When the server's side is closed after a COMMIT that was forwarded whole. */
export type ServerCloses = 'at_once' | 'after_answer'

/**
 * Cuts the connection at a PostgreSQL COMMIT.
 *
 * - `before`: the COMMIT is not forwarded.
 * - `after`: it is forwarded whole, and its answer is never relayed.
 * - `within`: a part of its bytes is forwarded. It may commit all the same, when only the Sync behind it is
 *   missing.
 * - `random`: one of the three, by the seed.
 */
export interface CutAtCommit extends Recurrence {
  readonly kind: 'cut_at_commit'
  readonly when: CommitCut | 'random'
  /**
   * Where the COMMIT begins: at its own first message (the default), or with the batch that it ends, so that
   * `before` and `within` also hold back the statements sent along with it. A batch reaches from one Sync to
   * the next.
   */
  readonly from?: 'commit' | 'batch'
  /**
   * Only for `after`. `atOnce`: the client is reset while the server is still at work, so the row may appear
   * after a first look for it. `after_answer`: the client is reset when the server has answered. `random` is
   * the default.
   */
  readonly serverCloses?: ServerCloses | 'random'
}

/**
 * Resets both sides (RST) once they are connected, or after so many bytes. Set while connections are open, it
 * counts their bytes from then on; without `afterBytes` it resets them at once.
 */
export interface ResetConnection extends Recurrence {
  readonly kind: 'reset'
  readonly afterBytes?: number
  readonly direction?: Direction
}

/** Accepts new connections and resets them at once; the server never hears of them. Open ones go on. */
export interface RefuseConnection extends Recurrence {
  readonly kind: 'refuse'
}

/** Delivers everything later, in order: by `delayMs`, and up to `jitterMs` more. */
export interface DelayBytes extends Recurrence {
  readonly kind: 'delay'
  readonly delayMs: number
  readonly jitterMs?: number
  readonly direction?: Direction
}

/**
 * The host vanished: nothing is relayed any more, no FIN and no RST either, on open connections and on new
 * ones. A connection that fell silent stays so until it is reset or the proxy is closed, under every fault that is
 * set meanwhile. The kernel still acknowledges packets, so TCP keepalive does not notice.
 */
export interface BlackHole extends Recurrence {
  readonly kind: 'black_hole'
  readonly direction?: Direction
}

/**
 * Relays so many bytes of one direction and then ends the connection in order (FIN). By default the bytes of the server
 * are counted, so that an answer is truncated; with `to_server` it is a request.
 */
export interface TruncateAnswer extends Recurrence {
  readonly kind: 'truncate'
  readonly afterBytes: number
  readonly direction?: Way
}

/**
 * Ends one direction in order (FIN), at once or after so many bytes, and drops what is sent that way later. The other
 * direction goes on. With `to_server`, which is the default, the server reads the end of a client that still listens.
 */
export interface HalfClose extends Recurrence {
  readonly kind: 'half_close'
  readonly afterBytes?: number
  readonly direction?: Way
}

/**
 * What a fault proxy does to the connections that it carries.
 *
 * @example
 * const fault: Fault = { kind: 'cut_at_commit', when: 'random', rate: 0.2 }
 */
export type Fault =
  | CutAtCommit
  | ResetConnection
  | RefuseConnection
  | DelayBytes
  | BlackHole
  | TruncateAnswer
  | HalfClose

const COMMON: OptionNames<Recurrence & { readonly kind: string }> = { kind: true, times: true, rate: true }
const NAMES: { readonly [K in Fault['kind']]: OptionNames<Extract<Fault, { kind: K }>> } = {
  cut_at_commit: { ...COMMON, when: true, from: true, serverCloses: true },
  reset: { ...COMMON, afterBytes: true, direction: true },
  refuse: COMMON,
  delay: { ...COMMON, delayMs: true, jitterMs: true, direction: true },
  black_hole: { ...COMMON, direction: true },
  truncate: { ...COMMON, afterBytes: true, direction: true },
  half_close: { ...COMMON, afterBytes: true, direction: true },
}

/** A fault that is set, with what is left of its `times`. */
export class ActiveFault {
  readonly fault: Fault
  #left: number

  constructor(fault: Fault) {
    this.fault = checkFault(fault)
    this.#left = fault.times ?? Number.POSITIVE_INFINITY
  }

  /** Whether this occasion is one that the fault was drawn for. */
  draw(random: Random): boolean {
    return random.chance(this.fault.rate ?? 1)
  }

  /**
   * Takes one of the `times`; false when none is left. Taken when the fault strikes, not when it is armed.
   */
  take(): boolean {
    if (this.#left <= 0) return false
    this.#left -= 1
    return true
  }
}

/** Whether a fault of this direction touches these bytes. */
export function touches(direction: Direction | undefined, way: Way): boolean {
  return direction === undefined || direction === 'both' || direction === way
}

function checkFault(fault: Fault): Fault {
  if (!Object.hasOwn(NAMES, fault.kind)) refuse('kind is unknown')
  refuseUnknown(`A fault of kind ${fault.kind}`, fault, NAMES[fault.kind])
  const { rate, times } = fault
  if (rate !== undefined && !(rate >= 0 && rate <= 1)) refuse('rate is a probability from 0 to 1')
  if (times !== undefined && !(Number.isSafeInteger(times) && times > 0))
    refuse('times is a positive whole number')
  switch (fault.kind) {
    case 'cut_at_commit':
      checkChoice('when', fault.when, ['before', 'after', 'within', 'random'])
      checkChoice('from', fault.from, ['commit', 'batch', undefined])
      checkChoice('serverCloses', fault.serverCloses, ['at_once', 'after_answer', 'random', undefined])
      return fault
    case 'delay':
      checkCount('delayMs', fault.delayMs)
      checkCount('jitterMs', fault.jitterMs ?? 0)
      break
    case 'reset':
      checkCount('afterBytes', fault.afterBytes ?? 0)
      break
    case 'truncate':
      checkCount('afterBytes', fault.afterBytes)
      checkChoice('direction', fault.direction, ['to_server', 'to_client', undefined])
      return fault
    case 'half_close':
      checkCount('afterBytes', fault.afterBytes ?? 0)
      checkChoice('direction', fault.direction, ['to_server', 'to_client', undefined])
      return fault
    case 'black_hole':
      break
    case 'refuse':
      return fault
    default:
      fault satisfies never
      return refuse('kind is unknown')
  }
  checkChoice('direction', fault.direction, ['to_server', 'to_client', 'both', undefined])
  return fault
}

function checkChoice<T>(name: string, value: T, choices: readonly T[]): void {
  if (!choices.includes(value))
    refuse(`${name} is one of ${choices.filter((choice) => choice !== undefined).join(', ')}`)
}

function checkCount(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) refuse(`${name} is a whole number of at least 0`)
}

function refuse(sentence: string): never {
  throw new OnlyonceError('option_invalid', { detail: `A fault was refused: ${sentence}.` })
}
