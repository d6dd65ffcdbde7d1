/**
 * Every public function that takes options refuses one that it does not know. The functions are read from the doors in
 * package.json, and their methods from the objects themselves: one that is missing in the tables of option-takers.ts
 * fails the test.
 */
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { Op } from '../../src/index.ts'
import * as root from '../../src/index.ts'
import {
  account,
  any,
  type Door,
  EXPORTS,
  type Give,
  NESTED,
  NO_OPTIONS,
  OBJECTS,
  once,
  pool,
  STRAY,
} from './option-takers.ts'
import { openShop } from './shop.ts'

const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  exports: Record<string, string | { readonly import: { readonly default: string } }>
}

function refusal(give: () => unknown): Promise<unknown> {
  return (async () => await give())().then(
    () => 'it was accepted',
    (error) => error,
  )
}

const REFUSED = {
  code: 'option_invalid',
  message: expect.stringMatching(/ has no option unheardOf\. (?:Did you mean|Its options are) /),
}

/** The client has no errors of the server's. */
const REFUSED_BY_CLIENT = { name: 'TypeError', message: REFUSED.message }

function publicMethods(object: object): string[] {
  const from = Object.getPrototypeOf(object) === Object.prototype ? object : Object.getPrototypeOf(object)
  return Object.getOwnPropertyNames(from).filter(
    (name) =>
      name !== 'constructor' && typeof Object.getOwnPropertyDescriptor(from, name)?.value === 'function',
  )
}

describe('every door', () => {
  const doors = Object.entries(exports).filter(([door]) => door !== './package.json')

  it('is in the table', () => {
    expect(Object.keys(EXPORTS).sort()).toEqual(doors.map(([door]) => door).sort())
  })

  it.each(doors)(
    '%s: all that it exports is in the table, and refuses an unknown option',
    async (name, where) => {
      const path = (where as { import: { default: string } }).import.default
        .replace('./dist/esm/', 'src/')
        .replace(/\.js$/, '.ts')
      const door = (await import(pathToFileURL(path).href)) as Door
      const table = EXPORTS[name] ?? {}
      expect(Object.keys(table).sort()).toEqual(Object.keys(door).sort())
      for (const [exported, give] of Object.entries(table)) {
        const refused = name.startsWith('./client') ? REFUSED_BY_CLIENT : REFUSED
        if (give !== NO_OPTIONS) expect(await refusal(() => give(door)), exported).toMatchObject(refused)
      }
    },
  )
})

describe.each(Object.entries(OBJECTS))('%s', (_, [object, methods]) => {
  it('has no method that is missing in the table', () => {
    expect(Object.keys(methods).sort()).toEqual(publicMethods(object).sort())
  })

  it.each(Object.entries(methods).filter(([, give]) => give !== NO_OPTIONS))('%s', async (_name, give) => {
    expect(await refusal(() => (give as Give)({}))).toMatchObject(REFUSED)
  })
})

it.each(Object.entries(NESTED))('%s refuses an unknown option', async (_, give) => {
  expect(await refusal(give)).toMatchObject(REFUSED)
})

it('OnlyonceModule.forRootAsync() refuses an unknown option', async () => {
  const { OnlyonceModule } = await import('../../src/http/adapters/nest/index.ts')
  const give = () => OnlyonceModule.forRootAsync(any({ useFactory: () => ({ once, account }), ...STRAY }))
  expect(await refusal(give)).toMatchObject(REFUSED)
})

describe.each(['express', 'node', 'fetch', 'hono'])('idempotent() of %s', (adapter) => {
  it('refuses to be made where it cannot tell whose request it is', async () => {
    const door = await import(pathToFileURL(`src/http/adapters/${adapter}/index.ts`).href)
    expect(() => door.idempotent(once, {}, () => {})).toThrow(
      'account is a function that tells whose request it is',
    )
    expect(() => door.idempotent(once, { acount: account }, () => {})).toThrow('Did you mean account?')
    expect(() => door.idempotent(once, undefined, () => {})).toThrow('takes an object of options')
  })
})

it.each([
  ['fingerprint', { fingerprint: STRAY }],
  ['onConcurrent', { onConcurrent: { waitMs: 1, ...STRAY } }],
])('%s of a route refuses an unknown option', async (_, policy) => {
  const { idempotent } = await import('../../src/http/adapters/express/index.ts')
  expect(await refusal(() => idempotent(once, any({ account, ...policy })))).toMatchObject(REFUSED)
})

describe('the steps of an operation', () => {
  /** Resolves to what was refused, before anything was sent. */
  async function giveInside(give: (op: Op) => unknown): Promise<unknown> {
    const shop = await openShop()
    let told: unknown = null
    const misspelt = root.operation('steps.misspelt', async (op) => {
      told = await refusal(() => give(op))
      return root.reply(201)
    })
    await shop
      .open()
      .run(misspelt, { account: 'acme', key: 'a-key-that-is-long', input: null })
      .catch((error) => {
        told = error
      })
    return told
  }

  const STEPS: Readonly<Record<string, ((op: Op) => unknown) | typeof NO_OPTIONS>> = {
    transaction: (op) => op.transaction('one', async () => 1, any(STRAY)),
    call: (op) => op.call('one', any({ call: async () => 1, ...STRAY })),
    compensate: (op) => op.compensate('one', any({ call: async () => 1, ...STRAY })),
    undo: NO_OPTIONS,
    emit: (op) => op.emit(any(pool), 'a', {}, any(STRAY)),
    stage: (op) => op.stage(any(pool), 'a', {}, any(STRAY)),
  }

  it.each(Object.entries(STEPS).filter(([, give]) => give !== NO_OPTIONS))('%s', async (_, give) => {
    expect(await giveInside(give as (op: Op) => unknown)).toMatchObject(REFUSED)
  })

  it('has no method that is missing in the table', async () => {
    let methods: string[] = []
    await giveInside((op) => {
      methods = publicMethods(op)
    })
    expect(Object.keys(STEPS).sort()).toEqual(methods.sort())
  })
})
