import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { FAULTS } from './faults.ts'
import { SCENARIOS, type Scenario } from './scenarios.ts'

export interface TortureOptions {
  readonly scenarios: readonly Scenario[]
  readonly seconds: number
  readonly seed: number
  readonly postgres: 'embedded' | 'debian'
  readonly json: boolean
}

const SECONDS = 60
const SECONDS_MAX = 86_400

/** Reads the arguments; ends the process with a sentence where one is wrong. */
export function readOptions(args: readonly string[]): TortureOptions {
  try {
    return parse(args)
  } catch (error) {
    console.error((error as Error).message)
    process.exit(2)
  }
}

function parse(args: readonly string[]): TortureOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      scenario: { type: 'string' },
      seconds: { type: 'string' },
      seed: { type: 'string' },
      faults: { type: 'string' },
      postgres: { type: 'string', default: 'embedded' },
      json: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
    },
  })
  if (values.list) {
    for (const { name, about } of SCENARIOS) console.log(`${name.padEnd(14)}${about}`)
    console.log(`\nFaults: ${FAULTS.map(({ name }) => name).join(', ')}`)
    process.exit(0)
  }
  const { postgres } = values
  if (postgres !== 'embedded' && postgres !== 'debian') throw new Error('--postgres is embedded or debian.')
  const faults = values.faults?.split(',') ?? null
  const unknown = faults?.find((name) => !FAULTS.some((fault) => fault.name === name))
  if (unknown !== undefined) throw new Error(`There is no fault ${unknown}. See --list.`)
  return {
    scenarios: chosen(values.scenario ?? null).map((one) => (faults === null ? one : { ...one, faults })),
    seconds: whole('--seconds', values.seconds ?? `${SECONDS}`, 1, SECONDS_MAX),
    seed: whole('--seed', values.seed ?? `${randomInt(2 ** 31)}`, 0, 2 ** 31),
    postgres,
    json: values.json,
  }
}

function chosen(names: string | null): readonly Scenario[] {
  if (names === null) return SCENARIOS
  return names.split(',').map((name) => {
    const scenario = SCENARIOS.find((one) => one.name === name)
    if (scenario === undefined) throw new Error(`There is no scenario ${name}. See --list.`)
    return scenario
  })
}

function whole(name: string, text: string, min: number, max: number): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= min && value <= max)) throw new Error(`${name} is a whole number from ${min} to ${max}.`)
  return value
}
