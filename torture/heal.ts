import { setTimeout as sleep } from 'node:timers/promises'

const TRIES_MAX = 150
const PAUSE_MS = 200

/** A fault is still there: what comes after it says nothing about the service, so the run cannot be judged. */
export class NotHealed extends Error {
  constructor(cause: unknown) {
    super(`A fault could not be healed: ${(cause as Error)?.message}`, { cause })
  }
}

/** Heals until it is healed. Other faults may be in the way for a while. */
export async function insist(heal: () => Promise<unknown>): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    try {
      await heal()
      return
    } catch (error) {
      if (tries >= TRIES_MAX) throw new NotHealed(error)
      await sleep(PAUSE_MS)
    }
  }
}
