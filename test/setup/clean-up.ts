import { afterAll, onTestFinished } from 'vitest'

type CleanUp = () => Promise<void>

const waiting = new Set<CleanUp>()

// Registered when the test file imports this one: inside a hook it would be too late to add another hook.
afterAll(async () => {
  const outcomes = await Promise.allSettled([...waiting].reverse().map((cleanUp) => cleanUp()))
  waiting.clear()
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed !== undefined) throw failed.reason
})

/**
 * Runs `cleanUp` when the present test is over, or, outside of a test, when the file is.
 *
 * @example
 * cleanUpLater(() => rm(folder, { recursive: true }))
 */
export function cleanUpLater(cleanUp: CleanUp): void {
  try {
    onTestFinished(cleanUp)
  } catch {
    waiting.add(cleanUp)
  }
}
