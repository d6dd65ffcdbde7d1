import { mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Makes the folder of a sandbox. One at a time: with `recursive` Node tries for ever where a file system makes none, as /proc does. */
export function makeFolder(path: string): void {
  const whole = resolve(path)
  if (statSync(whole, { throwIfNoEntry: false })?.isDirectory()) return
  if (dirname(whole) !== whole) makeFolder(dirname(whole))
  try {
    mkdirSync(whole, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(whole).isDirectory()) throw error
  }
}
