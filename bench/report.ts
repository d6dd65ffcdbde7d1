import { cpus, totalmem } from 'node:os'
import type { Spread } from './measure.ts'

/** What a suite gives back. Ratios are named after their two sides, `a/b`. */
export interface Report {
  readonly suite: string
  readonly rates: Readonly<Record<string, Spread>>
  readonly ratios: Readonly<Record<string, Spread>>
  /** Aims of some ratios, to be read beside what was measured. */
  readonly aims: Readonly<Record<string, number>>
  readonly commitsPerRequest: Readonly<Record<string, number>>
  readonly notes: readonly string[]
}

export function printTable({ suite, rates, ratios, aims, commitsPerRequest, notes }: Report): void {
  console.log(`\n${suite}: calls per second`)
  for (const [name, spread] of Object.entries(rates)) console.log(row(name, spread, 0))
  console.log(`\n${suite}: ratios, round by round`)
  for (const [name, spread] of Object.entries(ratios)) {
    const aim = aims[name] === undefined ? '' : `   aim >= ${aims[name]}`
    console.log(row(name, spread, 3) + aim)
  }
  if (Object.keys(commitsPerRequest).length > 0) {
    console.log(`\n${suite}: commits per request, counted by PostgreSQL`)
  }
  for (const [name, commits] of Object.entries(commitsPerRequest)) {
    console.log(`  ${name.padEnd(32)} ${commits}`)
  }
  for (const note of notes) console.log(`\n${note}`)
}

export function printJson({ suite, rates, ratios, commitsPerRequest }: Report, serverVersion: string): void {
  const { model } = cpus()[0] ?? { model: 'unknown' }
  const machine = {
    cpu: model,
    cores: cpus().length,
    memory_gib: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    postgres: serverVersion,
  }
  console.log(JSON.stringify({ suite, rates, ratios, commits_per_request: commitsPerRequest, machine }))
}

function row(name: string, { median, min, max }: Spread, digits: number): string {
  const number = (value: number) => value.toFixed(digits).padStart(9)
  return `  ${name.padEnd(38)} median ${number(median)}   min ${number(min)}   max ${number(max)}`
}
