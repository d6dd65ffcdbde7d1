import { insist } from './heal.ts'
import type { Program } from './process.ts'

/** One fault of the processor: which, for which share of requests, and how long it lasts where it lasts. */
export interface ProcessorRule {
  readonly fault: string
  readonly rate: number
  readonly ms: number
}

const COMMAND_MAX_MS = 5_000

/**
 * Tells the processor its faults, several at a time. The processor takes all of them back at once, so the ones that stay
 * are told again.
 */
export function processorControl({
  url,
  token,
  processor,
}: {
  readonly url: string
  readonly token: string
  readonly processor: Program
}): (rule: ProcessorRule) => Promise<() => Promise<void>> {
  const rules = new Set<ProcessorRule>()
  let last: Promise<void> = Promise.resolve()

  async function command(method: string, path: string, body?: unknown): Promise<void> {
    const response = await fetch(`${url}/${path}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(COMMAND_MAX_MS),
    })
    await response.text()
    if (!response.ok) throw new Error(`The processor refused ${method} ${path}: ${response.status}`)
  }

  /** A processor that is dead has forgotten its faults. One that is stopped is asked until it goes on. */
  async function tell(): Promise<void> {
    await insist(async () => {
      if (!processor.alive) return
      await command('DELETE', 'faults')
      // What was held goes on.
      await command('POST', 'release', {})
      if (rules.size > 0) await command('POST', 'faults', [...rules])
    })
  }

  const inTurn = (): Promise<void> => {
    last = last.then(tell, tell)
    return last
  }

  return async (rule) => {
    rules.add(rule)
    await inTurn()
    return async () => {
      rules.delete(rule)
      await inTurn()
    }
  }
}
