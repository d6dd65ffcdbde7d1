import assert from 'node:assert/strict'
import type { ClaimRequest, Queryable, Store } from '../../store/contract.ts'
import type { Unattended } from '../../store/recovery.ts'
import { type Cases, claimOf, FAILURE, isLeaseLost, LONG_MS, newId, reply, run, until } from './shared.ts'

type Kind = ClaimRequest['claimant']['kind']

/** A claim whose lease is over, as those see it who look after such. */
async function abandoned(store: Store<Queryable>, kind: Kind = 'handler', retentionMs = LONG_MS) {
  const claim = claimOf(newId(), { leaseMs: 1 })
  const owned = await run(store, { ...claim, claimant: { ...claim.claimant, kind }, retentionMs })
  return { owned, seen: await seenBy(store, owned.id, []) }
}

async function seenBy(store: Store<Queryable>, id: Unattended['id'], operations: readonly string[]) {
  let seen: Unattended | undefined
  await until(async () => {
    const request = { graceMs: 0, operations, orphanedMs: LONG_MS, limit: 100_000 }
    seen = (await store.recovery.unattended(request)).find((other) => other.id.key === id.key)
    return seen !== undefined
  })
  return seen!
}

/** The same in doubt, with its look due. */
async function inDoubt(store: Store<Queryable>, kind: Kind = 'handler') {
  const { owned, seen } = await abandoned(store, kind)
  assert.equal(await store.recovery.vanish(seen, 0, LONG_MS), 'unknown')
  return { owned, seen: await seenBy(store, owned.id, [owned.id.operation]) }
}

const stateOf = async (store: Store<Queryable>, { id }: Pick<Unattended, 'id'>) =>
  (await store.look(id))?.record.state

export const RECOVERY: Cases = {
  'finds what was abandoned after its grace, and not what has an owner': async ({ store }) => {
    const { seen } = await abandoned(store)
    assert.equal(seen.state, 'in_progress')
    const request = { graceMs: LONG_MS, operations: [], orphanedMs: LONG_MS, limit: 100_000 }
    const patient = await store.recovery.unattended(request)
    assert.ok(patient.every(({ id }) => id.key !== seen.id.key))
    assert.equal(await store.recovery.vanish(seen, LONG_MS, LONG_MS), null)
    assert.equal(await stateOf(store, seen), 'in_progress')
  },

  'makes what was abandoned unknown, or retryable where it may run again': async ({ store }) => {
    const plain = await abandoned(store)
    assert.equal(await store.recovery.vanish(plain.seen, 0, LONG_MS), 'unknown')
    assert.equal(await store.recovery.vanish(plain.seen, 0, LONG_MS), null)
    const again = await abandoned(store, 'handler_rerunnable')
    assert.equal(await store.recovery.vanish(again.seen, 0, LONG_MS), 'retryable')
    assert.equal(await stateOf(store, again.seen), 'retryable')
  },

  'leaves what counts on recover to those who have it': async ({ store }) => {
    const { seen } = await inDoubt(store, 'handler_recoverable')
    const request = { graceMs: 0, operations: [] as string[], orphanedMs: LONG_MS, limit: 100_000 }
    const others = await store.recovery.unattended(request)
    assert.ok(others.every(({ id }) => id.key !== seen.id.key))
    const later = await store.recovery.unattended({ ...request, orphanedMs: 0 })
    assert.ok(later.some(({ id }) => id.key === seen.id.key))
  },

  'gives a look to one of many who ask for it': async ({ store }) => {
    const { seen } = await inDoubt(store)
    const looks = await Promise.all(Array.from({ length: 20 }, () => store.recovery.takeLook(seen, LONG_MS)))
    assert.equal(looks.filter((look) => look !== null).length, 1)
    assert.equal(looks.find((look) => look !== null)?.looks, 1)
    const claim = await store.claim(claimOf(seen.id))
    assert.ok(claim.kind === 'unknown' && !claim.due)
  },

  'takes the word of the last look alone': async ({ store }) => {
    const { seen } = await inDoubt(store)
    const first = (await store.recovery.takeLook(seen, 0))!
    const second = (await store.recovery.takeLook(first, 0))!
    assert.equal(second.looks, 2)
    assert.equal(await store.recovery.endLook(first, { end: 'void', failure: FAILURE }, LONG_MS), false)
    assert.equal(await stateOf(store, seen), 'unknown')
    assert.equal(await store.recovery.endLook(second, { end: 'found', reply: reply('found') }, LONG_MS), true)
    const decision = await store.claim(claimOf(seen.id))
    assert.equal(decision.kind === 'replay' && decision.record.reply.body?.toString(), 'found')
  },

  'keeps what it finds as long as the claim said': async ({ store }) => {
    const { seen } = await abandoned(store, 'handler', 5_000_000)
    await store.recovery.vanish(seen, 0, LONG_MS)
    const due = await seenBy(store, seen.id, [])
    const look = (await store.recovery.takeLook(due, LONG_MS))!
    await store.recovery.endLook(look, { end: 'void', failure: FAILURE }, 1)
    const { record } = (await store.look(seen.id))!
    assert.ok(record.state === 'retryable' && record.expiresAt - record.changedAt > 4_000_000)
    assert.deepEqual(record.failure, FAILURE)
  },

  'looks again when it was told to': async ({ store }) => {
    const { seen } = await inDoubt(store)
    const look = (await store.recovery.takeLook(seen, LONG_MS))!
    assert.equal(await store.recovery.endLook(look, { end: 'again', inMs: LONG_MS }, LONG_MS), true)
    assert.equal(await store.recovery.takeLook(look, LONG_MS), null)
    const { record } = (await store.look(seen.id))!
    assert.ok(record.state === 'unknown' && record.looks === 1 && record.lookAt! > record.changedAt)
  },

  'takes the late reply of the owner of what a worker parked, and none after a look has decided': async ({
    store,
  }) => {
    const parked = await inDoubt(store)
    const end = { end: 'parked', failure: FAILURE } as const
    assert.equal(await store.recovery.endLook(parked.seen, end, LONG_MS), true)
    assert.equal(await stateOf(store, parked.seen), 'parked')
    await store.complete(parked.owned, reply('late'), LONG_MS)
    assert.equal(await stateOf(store, parked.seen), 'completed')

    const voided = await inDoubt(store)
    await store.recovery.endLook(voided.seen, { end: 'void', failure: FAILURE }, LONG_MS)
    await assert.rejects(store.complete(voided.owned, reply('late'), LONG_MS), isLeaseLost)
    await assert.rejects(store.release(voided.owned, FAILURE, LONG_MS), isLeaseLost)
    assert.equal(await stateOf(store, voided.seen), 'retryable')

    const found = await inDoubt(store)
    await store.recovery.endLook(found.seen, { end: 'found', reply: reply('found') }, LONG_MS)
    await assert.rejects(store.complete(found.owned, reply('late'), LONG_MS), isLeaseLost)
  },

  'writes nothing after a look when the owner is back': async ({ store }) => {
    const { owned, seen } = await inDoubt(store)
    const look = (await store.recovery.takeLook(seen, LONG_MS))!
    await store.extend(owned, LONG_MS)
    assert.equal(await store.recovery.endLook(look, { end: 'void', failure: FAILURE }, LONG_MS), false)
    assert.equal(await stateOf(store, seen), 'in_progress')
  },
}
