/** What workers and operators are told while the store is away: what happened, and nothing that is meant for a client. */
import { expect, it } from 'vitest'
import { operator } from '../../src/operator/index.ts'
import { relay } from '../../src/outbox/index.ts'
import { completer, reaper, reconciler, recoverer } from '../../src/workers/index.ts'
import { once } from './option-takers.ts'

const id = { account: 'acme', operation: 'orders.create', key: 'a-key-that-is-long' }
const signature = { by: 'ann', why: 'because' }
const desk = operator(once)
const reply = { status: 200, body: '{}' }

it.each<[string, () => Promise<unknown>]>([
  ['completer().runOnce()', () => completer(once).runOnce()],
  ['reconciler().runOnce()', () => reconciler(once).runOnce()],
  ['recoverer().runOnce()', () => recoverer(once).runOnce()],
  ['reaper().runOnce()', () => reaper(once, { mode: 'delete' }).runOnce()],
  ['relay().runOnce()', () => relay(once, { jobs: { mail: async () => {} } }).runOnce()],
  ['operator().resolve()', () => desk.resolve(id, { ...signature, reply })],
  ['operator().giveUp()', () => desk.giveUp(id, { ...signature, reply })],
  ['operator().park()', () => desk.park(id, signature)],
  ['operator().unpark()', () => desk.unpark(id, signature)],
])('%s', async (_, ask) => {
  const error = await ask().then(
    () => null,
    (thrown: Error) => thrown,
  )
  expect(error).toMatchObject({ code: 'store_unavailable' })
  expect(error!.message).not.toMatch(/same (?:key|request)|this request|started nothing|again/i)
})
