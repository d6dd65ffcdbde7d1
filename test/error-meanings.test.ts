import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { ERRORS } from '../src/core/errors.ts'
import { idempotent } from '../src/http/adapters/fetch/index.ts'
import { businessKey, onlyonce } from '../src/index.ts'
import { memory } from '../src/store/memory/index.ts'

const ENTRIES = Object.entries(ERRORS)

/** Raised to code that uses locks, the desk of operators or webhooks, or that defines something: no client with a key gets them. */
const NOT_ABOUT_A_KEY = /^(lock_|fence_|resource_|decision_|not_resolvable|record_changed|webhook_)/

const SAME_KEY = /with the same key/i
const NEW_KEY = /(?<!do not )\buse a new key/i
const CORRECTS =
  /correct it|\bsend (?!the same)|encode|name each|nested|too many members|larger than|surrogate|compress|authenticate|ask (it )?for|pass a string|takes|quote it|use a new key/i

/** What a client does, by what it is told of an error: the table of docs/reference/errors.md. */
const MEANINGS: Readonly<Record<string, (message: string, status: number) => readonly string[]>> = {
  'true no': again,
  'true not_by_this_request': again,
  'true unknown': again,
  'false not_by_this_request': (message, status) => [
    ...(status >= 400 && status < 500 ? [] : ['is no mistake of the request']),
    ...(/send the same request/i.test(message) ? ['says to send it again unchanged'] : []),
    ...(CORRECTS.test(message) ? [] : ['does not say what to correct']),
  ],
  'false unknown': (message) => [
    ...(NEW_KEY.test(message) ? ['suggests a new key'] : []),
    ...(/contact support/i.test(message) ? [] : ['does not say whom to ask']),
    ...(/do not use a new key/i.test(message) ? [] : ['does not warn of a new key']),
    ...(SAME_KEY.test(message) ? ['says to send it again'] : []),
  ],
  'false yes': (message) => (/took effect/.test(message) ? [] : ['does not say that it happened']),
}

function again(message: string): readonly string[] {
  return [
    ...(SAME_KEY.test(message) ? [] : ['does not say to send it with the same key']),
    ...(NEW_KEY.test(message) ? ['suggests a new key'] : []),
    ...(/contact support/i.test(message) ? ['says to ask a person'] : []),
  ]
}

it('no message of an error says something else than its retryable and executed do', () => {
  const wrong = ENTRIES.filter(([code]) => !NOT_ABOUT_A_KEY.test(code)).flatMap(
    ([code, { status, retryable, executed, message }]) =>
      MEANINGS[`${retryable} ${executed}`]!(message, status).map((what) => `${code} ${what}: ${message}`),
  )
  expect(wrong).toEqual([])
})

it('docs/reference/errors.md says once what a client does, for each combination that there is', () => {
  const rows = readFileSync(new URL('../docs/reference/errors.md', import.meta.url), 'utf8').matchAll(
    /^\| (true|false) \| (.+?) \|/gm,
  )
  const told = [...rows].flatMap(([, retryable, executed]) =>
    [...executed!.matchAll(/`(\w+)`/g)].map(([, name]) => `${retryable} ${name}`),
  )
  expect(new Set(told).size).toBe(told.length)
  const used = new Set(ENTRIES.map(([, { retryable, executed }]) => `${retryable} ${executed}`))
  expect([...used].filter((combination) => !told.includes(combination))).toEqual([])
})

it('what a developer has to repair is told to no client', () => {
  const advice =
    /\btx\b|onlyonce|once\.\w|postgres\(|\bpool\b|key ring|migrat|keepRawBody|body parser|savepoint|\bpass\b(?! a string)/i
  const wrong = ENTRIES.filter(([code]) => !NOT_ABOUT_A_KEY.test(code)).filter(([, { message }]) =>
    advice.test(message),
  )
  expect(wrong.map(([code]) => code)).toEqual([])
})

const SECRET = 'a-secret-that-is-long-enough-0123456789'
const BEFORE_THE_STORE: Readonly<Record<string, () => unknown>> = {
  business_key_invalid: () => businessKey('order'),
  secret_invalid: () => onlyonce({ store: memory(), secret: 'short' }),
  pointer_invalid: () => {
    const once = onlyonce({ store: memory(), secret: SECRET, background: false })
    const policy = {
      account: () => 'a',
      operation: 'orders.create',
      fingerprint: { exclude: ['no pointer'] },
    }
    return idempotent(once, policy, () => new Response())
  },
}

it.each(Object.entries(BEFORE_THE_STORE))(
  '%s, which is thrown before anything is asked of a store, says that its request started nothing',
  (code, make) => {
    const entry = { code, status: 500, retryable: true, executed: 'not_by_this_request' }
    expect(make).toThrow(expect.objectContaining(entry))
  },
)

it('the work of a handler that throws such an error has begun all the same', async () => {
  const once = onlyonce({ store: memory(), secret: SECRET, background: false })
  const call = { account: 'a', operation: 'orders.create', key: 'order-19283', input: 1 }
  const told = once.execute(call, async () => businessKey('order'))
  await expect(told).rejects.toMatchObject({ code: 'handler_failed', executed: 'unknown' })
  await once.close()
})
