import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { MUTANTS } from './mutants.ts'

/** The test that noticed a fault. */
export interface Catch {
  readonly file: string
  readonly test: string
}

const FILE = fileURLToPath(new URL('caught-by.json', import.meta.url))

/** By the name of the mutant: the test that noticed it when the table was last recorded. */
export const CAUGHT_BY: Readonly<Record<string, Catch>> = existsSync(FILE)
  ? JSON.parse(readFileSync(FILE, 'utf8'))
  : {}

/** Keeps what is known of mutants that were not tried this time, and nothing of those that are gone. */
export function record(caught: ReadonlyMap<string, Catch>): void {
  const known = MUTANTS.map(({ name }) => [name, caught.get(name) ?? CAUGHT_BY[name]] as const)
  const found = known.filter(([, test]) => test !== undefined)
  writeFileSync(FILE, `${JSON.stringify(Object.fromEntries(found), null, 2)}\n`)
}
