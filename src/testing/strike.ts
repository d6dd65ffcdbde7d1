import {
  type ActiveFault,
  type Direction,
  type HalfClose,
  type ResetConnection,
  type TruncateAnswer,
  touches,
  type Way,
} from './faults.ts'

/** A fault that waits on one connection for its byte. */
export class Strike {
  readonly fault: ResetConnection | TruncateAnswer | HalfClose
  readonly #active: ActiveFault
  #leftBytes: number
  #state: 'waiting' | 'over' = 'waiting'

  constructor(active: ActiveFault, fault: Strike['fault']) {
    this.fault = fault
    this.#active = active
    this.#leftBytes = fault.afterBytes ?? 0
  }

  /** How many of these bytes still pass before the fault strikes; null when it does not strike among them. */
  pass(way: Way, lengthBytes: number): number | null {
    if (this.#state === 'over' || !touches(directionOf(this.fault), way)) return null
    if (lengthBytes < this.#leftBytes) {
      this.#leftBytes -= lengthBytes
      return null
    }
    this.#state = 'over'
    // Another connection may have used up the fault's times since this one was armed.
    return this.#active.take() ? this.#leftBytes : null
  }
}

/** The direction whose bytes a fault counts, with the default of its kind. */
function directionOf(fault: Strike['fault']): Direction | undefined {
  switch (fault.kind) {
    case 'reset':
      return fault.direction
    case 'truncate':
      return fault.direction ?? 'to_client'
    case 'half_close':
      return fault.direction ?? 'to_server'
    default:
      return fault satisfies never
  }
}
