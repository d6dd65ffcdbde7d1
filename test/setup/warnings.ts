import { cleanUpLater } from './clean-up.ts'

/** The messages of this process's warnings of one kind, from now until the end of the test. They come a moment after their cause. */
export function hearWarnings(name: string): readonly string[] {
  const told: string[] = []
  const note = (warning: Error) => void (warning.name === name && told.push(warning.message))
  process.on('warning', note)
  cleanUpLater(async () => void process.off('warning', note))
  return told
}
