import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import type { RecordId } from '../record/index.ts'
import type { Takable } from '../store/operations.ts'

/** How long a record has to stand still, and after how long the same operation is told again. */
export interface WatchBounds {
  readonly unmovedMs: number
  readonly againMs: number
}

/**
 * Notices operations that wait for a worker while no worker takes them: one that was forgotten, or one that lacks their code. A backlog alone
 * is no reason, however long it is. Workers take what has waited longest first, and raise its fence, so a worker that is only busy takes
 * another record each time; the record that has waited longest stands still only where no worker takes it.
 */
export class UnattendedWatch {
  readonly #find: (except: readonly string[]) => Promise<readonly Takable[]>
  readonly #tell: (id: RecordId) => void
  readonly #bounds: WatchBounds
  /** What had waited longest at the last look, and until when it has to stand still to be told. */
  #seen = new Map<string, Deadline>()
  /** Operations that were found unattended: what else waits would hide behind their records. */
  readonly #found = new Map<string, Deadline>()

  constructor(
    find: (except: readonly string[]) => Promise<readonly Takable[]>,
    tell: (id: RecordId) => void,
    bounds: WatchBounds,
  ) {
    this.#find = find
    this.#tell = tell
    this.#bounds = bounds
  }

  async look(): Promise<void> {
    for (const [operation, again] of this.#found) if (again.passed) this.#found.delete(operation)
    const longest = await this.#find([...this.#found.keys()])
    const before = this.#seen
    this.#seen = new Map()
    for (const { id, fence } of longest) {
      const which = JSON.stringify([id.account, id.operation, id.key, fence])
      const stillUntil = before.get(which) ?? new Deadline(this.#bounds.unmovedMs)
      if (!stillUntil.passed) {
        this.#seen.set(which, stillUntil)
        continue
      }
      if (this.#found.size < LIMITS.warnedOperationsMax)
        this.#found.set(id.operation, new Deadline(this.#bounds.againMs))
      this.#tell(id)
    }
  }
}
