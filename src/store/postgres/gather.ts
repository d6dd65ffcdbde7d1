import { OnlyonceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'

export interface Asked<Item, Answer> {
  readonly item: Item
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

interface GatherOptions<Item, Answer> {
  readonly batchMax: number
  /** So many may be on their way before the next has to wait and grow. */
  readonly underWayMax: number
  /** Answers everybody in the batch, one way or the other; never throws. */
  readonly send: (batch: readonly Asked<Item, Answer>[]) => Promise<void>
  /** True while no caller is in a hurry: then a batch may be put off for some milliseconds. */
  readonly mayWait?: () => boolean
}

/**
 * Makes batches of what many ask for. A caller that asks alone does not wait: a batch leaves in the same turn of the
 * event loop. What is asked while batches are under way goes into the next one, so they grow with the load and by
 * themselves. A batch that gets no answer for a while holds no caller up any longer: its connection may be dead, and
 * the others are not.
 */
export class Gather<Item, Answer> {
  readonly #options: GatherOptions<Item, Answer>
  #asked: Asked<Item, Answer>[] = []
  #underWay = 0
  #planned: 'no' | 'now' | 'later' = 'no'
  #timer: NodeJS.Timeout | undefined

  constructor(options: GatherOptions<Item, Answer>) {
    this.#options = options
  }

  /** Throws `overloaded` when too many wait already. */
  ask(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#asked.length >= LIMITS.waitingMax) throw new OnlyonceError('overloaded')
      this.#asked.push({ item, resolve, reject })
      this.#plan()
    })
  }

  /** Whether to wait is to be thought over. */
  reconsider(): void {
    if (this.#planned === 'later') this.#plan()
  }

  #plan(): void {
    if (this.#planned === 'now' || this.#asked.length === 0) return
    const { mayWait, batchMax, underWayMax } = this.#options
    if (this.#underWay >= underWayMax) return
    if (mayWait === undefined || !mayWait() || this.#asked.length >= batchMax) {
      clearTimeout(this.#timer)
      this.#planned = 'now'
      setImmediate(() => this.#send())
    } else if (this.#planned === 'no') {
      this.#planned = 'later'
      this.#timer = setTimeout(() => this.#send(), LIMITS.lookDelayMaxMs)
    }
  }

  #send(): void {
    this.#planned = 'no'
    const batch = this.#asked.splice(0, this.#options.batchMax)
    this.#underWay += 1
    let counted = true
    const letOthersGo = () => {
      if (!counted) return
      counted = false
      this.#underWay -= 1
      this.#plan()
    }
    const overdue = setTimeout(letOthersGo, LIMITS.batchWaitMaxMs)
    void this.#options.send(batch).finally(() => {
      clearTimeout(overdue)
      letOthersGo()
    })
    this.#plan()
  }
}
