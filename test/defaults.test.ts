/** The doc comment of every option tells what counts where it is left out. */
import { expect, test } from 'vitest'
import { LIMITS } from '../src/core/limits.ts'
import { type Exported, publicExports } from './setup/public-docs.ts'

/** Where the options of the library are. Those of a route are told by docs/reference/http.md, and by the types of each framework. */
const OF_FRAMEWORKS = /^onlyonce\/(?:http|express|fastify|fetch|hono|koa|nest|node)$/
const OPTIONS = /(?:Options|Rules|Limits|CallStep)$/

/** Options whose default is a limit of another name. */
const OTHERWISE: readonly string[] = [
  'RelayOptions.leaseMs',
  'WebhooksOptions.retentionMs',
  'WebhooksOptions.retryAfterMs',
]

interface Option {
  readonly name: string
  readonly of: string
  readonly told: string | null
}

function optionsOf({ name: of, text }: Exported): Option[] {
  const members = text.matchAll(/((?: {2}\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?) {2}readonly (\w+)\?:/g)
  return [...members].map(([, comment = '', name = '']) => ({
    name,
    of,
    told: /@default ([^\n]+?)(?: \*\/)?\n/.exec(comment)?.[1] ?? null,
  }))
}

const options = publicExports()
  .filter(({ name, kind, door }) => kind === 'type' && OPTIONS.test(name) && !OF_FRAMEWORKS.test(door))
  .flatMap(optionsOf)

test('every option has its default in its comment', () => {
  expect(options.length).toBeGreaterThan(80)
  expect(options.filter(({ told }) => told === null).map(({ of, name }) => `${of}.${name}`)).toEqual([])
})

test('a default that is a limit is that of the table', () => {
  const limits = LIMITS as Readonly<Record<string, unknown>>
  const named = options.filter(
    ({ of, name }) => Object.hasOwn(limits, name) && !OTHERWISE.includes(`${of}.${name}`),
  )
  expect(named.length).toBeGreaterThan(30)
  const wrong = named.filter(({ told, name }) => told?.replaceAll('_', '') !== shown(limits[name]))
  expect(wrong.map(({ of, name, told }) => `${of}.${name}: ${told}`)).toEqual([])
})

function shown(value: unknown): string {
  return Array.isArray(value) ? `[${value.join(', ')}]` : `${value}`
}
