import { type ActiveFault, type ResetConnection, type TruncateAnswer, touches, type Way } from './faults.ts'

/** A reset or a truncation that waits on one connection for its byte. */
export class Strike {
  readonly kind: 'reset' | 'truncate'
  readonly #active: ActiveFault
  readonly #fault: ResetConnection | TruncateAnswer
  #left_bytes: number
  #state: 'waiting' | 'over' = 'waiting'

  constructor(active: ActiveFault, fault: ResetConnection | TruncateAnswer) {
    this.kind = fault.kind
    this.#active = active
    this.#fault = fault
    this.#left_bytes = fault.after_bytes ?? 0
  }

  /** How many of these bytes still pass before the fault strikes; null when it does not strike among them. */
  pass(way: Way, length_bytes: number): number | null {
    const direction = this.#fault.kind === 'truncate' ? 'to_client' : this.#fault.direction
    if (this.#state === 'over' || !touches(direction, way)) return null
    if (length_bytes < this.#left_bytes) {
      this.#left_bytes -= length_bytes
      return null
    }
    this.#state = 'over'
    // Another connection may have used up the fault's times since this one was armed.
    return this.#active.take() ? this.#left_bytes : null
  }
}
