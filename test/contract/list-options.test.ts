/** An option that is a list, given as a single value: a clear error, and neither a TypeError nor a list of letters. */
import { describe, expect, it } from 'vitest'
import { idempotent } from '../../src/http/adapters/express/index.ts'
import { onlyonce, operation } from '../../src/index.ts'
import { listRequestOf } from '../../src/operator/list.ts'
import { relay } from '../../src/outbox/index.ts'
import { velocityLimit } from '../../src/rate-limits/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { webhooks } from '../../src/webhooks/index.ts'
import { startWorkers } from '../../src/workers/index.ts'
import { account, any, once, pool } from './option-takers.ts'

const secret = 'a secret of at least thirty-two bytes'
const route = (policy: object) => idempotent(once, any({ account, operation: 'orders.create', ...policy }))
const door = (options: object) => onlyonce(any({ store: postgres({ pool }), secret, ...options }))
const made = operation('orders.create', async () => null)
const to = (types: unknown) =>
  relay(once, { destinations: { mail: any({ publisher: async () => {}, types }) } })
const limit = (rules: unknown) => velocityLimit({ pool, name: 'card', secret, rules: any(rules) })

describe('a list option that is no list', () => {
  it.each<[string, () => unknown]>([
    ['methods', () => route({ methods: 'POST' })],
    ['methods', () => route({ methods: { POST: true } })],
    ['header', () => route({ header: 7 })],
    ['replyHeaders', () => route({ replyHeaders: 'location' })],
    ['replyHeaders', () => route({ replyHeaders: 7 })],
    ['include', () => route({ fingerprint: { include: '/amount' } })],
    ['exclude', () => route({ fingerprint: { exclude: '/meta' } })],
    ['operations', () => door({ operations: made })],
    ['operations', () => door({ operations: 'orders.create' })],
    ['reconcileAfterMs', () => door({ reconcileAfterMs: 1_000 })],
    ['operations', () => startWorkers(once, { operations: any(made) })],
    ['workers', () => startWorkers(once, { workers: any('reaper') })],
    ['states', () => listRequestOf({ account: 'acme', states: any('parked') })],
    ['types', () => to('payment.captured')],
    ['rules', () => limit({ points: 1, perMs: 1_000 })],
    ['retryAfterMs', () => webhooks(once, any({ retryAfterMs: 1_000 }))],
  ])('%s says so', (name, give) => {
    let thrown: unknown
    try {
      give()
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({ code: expect.stringMatching(/^(?:option|pointer)_invalid$/) })
    expect((thrown as Error).message).toMatch(new RegExp(`\\b${name}\\b.*\\[|\\b${name}\\b.* list`))
  })

  it('shows how a single value is written', () => {
    expect(() => route({ methods: 'POST' })).toThrow(`orders.create: methods is a list: ['POST'].`)
    expect(() => to('payment.captured')).toThrow(`types of destination mail is a list: ['payment.captured'].`)
    expect(() => door({ reconcileAfterMs: 1_000 })).toThrow('reconcileAfterMs is a list: [1000].')
  })
})
