/** Reads the arguments of a command. Nothing that is not known is passed over without a word. */
import { parseArgs } from 'node:util'
import { nearest } from '../core/options.ts'
import { COMMON, type Command, type Option } from './command.ts'
import { usage } from './exit.ts'
import { readDuration, readTime } from './times.ts'

/** The options that were given, read by what they are. */
export class Values {
  readonly #given: ReadonlyMap<string, readonly string[]>

  constructor(given: ReadonlyMap<string, readonly string[]>) {
    this.#given = given
  }

  has(name: string): boolean {
    return this.#given.has(name)
  }

  /** Undefined where it was not given. */
  text(name: string): string | undefined {
    return this.#given.get(name)?.at(-1)
  }

  texts(name: string): readonly string[] {
    return this.#given.get(name) ?? []
  }

  required(name: string): string {
    const value = this.text(name)
    if (value === undefined || value.trim() === '') throw usage(`--${name} is needed.`)
    return value
  }

  whole(name: string): number | undefined {
    const value = this.text(name)
    if (value === undefined) return undefined
    if (!/^\d{1,15}$/.test(value)) throw usage(`--${name} is a whole number.`)
    return Number(value)
  }

  durationMs(name: string): number | undefined {
    const value = this.text(name)
    return value === undefined ? undefined : readDuration(`--${name}`, value)
  }

  timeMs(name: string): number | undefined {
    const value = this.text(name)
    return value === undefined ? undefined : readTime(`--${name}`, value)
  }
}

/**
 * The command that is meant, and what stands behind it. Options may stand before its name.
 *
 * @example
 * findCommand(commands, ['--json', 'outbox', 'lag']) // { command: <outbox lag>, rest: ['--json'] }
 */
export function findCommand(
  commands: readonly Command[],
  argv: readonly string[],
): { readonly command: Command | null; readonly rest: readonly string[]; readonly words: readonly string[] } {
  const places = wordPlaces(argv)
  const words = places.map((place) => argv[place]!)
  for (const length of [2, 1]) {
    const name = words.slice(0, length).join(' ')
    const command = words.length < length ? undefined : commands.find((one) => one.name === name)
    if (command === undefined) continue
    const taken = places.slice(0, length)
    return { command, rest: argv.filter((_, place) => !taken.includes(place)), words }
  }
  return { command: null, rest: argv, words }
}

/** Where the first words stand that are neither options nor values of those that every command takes. */
function wordPlaces(argv: readonly string[]): number[] {
  const places: number[] = []
  for (let i = 0; i < argv.length && places.length < 2; i += 1) {
    const word = argv[i]!
    if (!word.startsWith('-')) places.push(i)
    else if (COMMON.some(({ name, value }) => value !== undefined && word === `--${name}`)) i += 1
  }
  return places
}

export function unknownCommand(commands: readonly Command[], words: readonly string[]): Error {
  const name = words[0]!
  const group = commands.filter((one) => one.name.startsWith(`${name} `))
  if (group.length > 0) {
    return usage(
      `${name} is followed by one of: ${group.map((one) => one.name.slice(name.length + 1)).join(', ')}.`,
    )
  }
  const near = nearest(name, [...new Set(commands.map((one) => one.name.split(' ')[0]!))])
  const advice = near === null ? 'See `onlyonce help`.' : `Did you mean ${near}?`
  return usage(`There is no command ${name}. ${advice}`)
}

/** Checks names, values and the number of arguments. */
export function readArguments(
  command: Command,
  argv: readonly string[],
): { readonly values: Values; readonly given: readonly string[] } {
  const options = [...command.options, ...COMMON]
  const { tokens } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      options.map(({ name, value }) => [name, { type: value === undefined ? 'boolean' : 'string' }] as const),
    ),
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const values = new Map<string, string[]>()
  const given: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') given.push(token.value)
    if (token.kind !== 'option') continue
    const option = options.find(({ name }) => name === token.name)
    if (option === undefined || !token.rawName.startsWith('--'))
      throw unknownOption(command, token.rawName, options)
    const before = values.get(option.name) ?? []
    if (before.length > 0 && option.many === undefined) throw usage(`--${option.name} is given twice.`)
    values.set(option.name, [...before, givenValue(option, token.value, token.inlineValue === true)])
  }
  if (!values.has('help')) checkCount(command, given)
  return { values: new Values(values), given }
}

function givenValue(option: Option, value: string | undefined, inline: boolean): string {
  const name = `--${option.name}`
  if (option.value === undefined) {
    if (value !== undefined) throw usage(`${name} takes no value.`)
    return ''
  }
  if (value === undefined) throw usage(`${name} needs a value: ${name} ${option.value}.`)
  if (!inline && value.startsWith('-') && value !== '-') {
    throw usage(`${name} needs a value; write ${name}=${value} if this is it.`)
  }
  if (option.choices !== undefined && !option.choices.includes(value)) {
    throw usage(`${name} is one of: ${option.choices.join(', ')}.`)
  }
  return value
}

function unknownOption(command: Command, rawName: string, options: readonly Option[]): Error {
  if (/^--(?:secret|encryption|password)$/.test(rawName)) {
    return usage(
      `There is no option ${rawName}: all users of a machine can see the arguments of a process. Use ONLYONCE_SECRET and ONLYONCE_ENCRYPTION, or a file; PGPASSWORD or ~/.pgpass for a password.`,
    )
  }
  const names = options.map(({ name }) => name)
  const near = nearest(rawName.replace(/^-+/, ''), names)
  const known = names.map((name) => `--${name}`).join(', ')
  const advice = near === null ? `Its options are ${known}.` : `Did you mean --${near}?`
  return usage(`${command.name} has no option ${rawName.slice(0, 64)}. ${advice}`)
}

function checkCount({ name, takes }: Command, given: readonly string[]): void {
  const most = takes.length
  const least = takes.filter((one) => !one.startsWith('[')).length
  if (given.length < least)
    throw usage(`${name} takes ${takes.join(' ')}; ${takes[given.length]} is missing.`)
  if (given.length > most) {
    const wants = most === 0 ? 'takes no arguments' : `takes ${takes.join(' ')}`
    throw usage(`${name} ${wants}, and ${JSON.stringify(given[most])} is one too many.`)
  }
}
