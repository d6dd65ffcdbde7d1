import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { OnlyonceError } from '../errors.ts'
import type { Decision, RecordId, Reply } from '../record/index.ts'
import type { ClaimRequest, Owned, Queryable, Store, TransactionAttempt } from '../store/contract.ts'

/** What the suite needs of a test runner: vitest, jest, mocha and node:test all have it. */
export interface TestRunner {
  readonly describe: (name: string, body: () => void) => unknown
  readonly it: (name: string, body: () => Promise<void>) => unknown
}

/** A store under test, and how to begin a transaction of one's own in its database. */
export interface StoreUnderTest {
  readonly store: Store<Queryable>
  begin(): Promise<{ readonly tx: Queryable; commit(): Promise<void>; rollback(): Promise<void> }>
}

/**
 * The contract of a store, as tests. A store that passes may stand behind every kind of protection.
 *
 * @example
 * storeConformance({ describe, it }, 'my store', async () => ({ store: await makeMyStore(), begin }))
 */
export function storeConformance(
  runner: TestRunner,
  name: string,
  open: () => Promise<StoreUnderTest>,
): void {
  runner.describe(`${name} obeys the contract of stores`, () => {
    for (const [title, body] of Object.entries({
      ...CLAIMS,
      ...ENDS,
      ...LEASES,
      ...TRANSACTIONS,
      ...WITHIN,
    })) {
      runner.it(title, async () => {
        const under_test = await open()
        await under_test.store.start()
        await body(under_test)
      })
    }
  })
}

type Case = (under_test: StoreUnderTest) => Promise<void>

const LONG_MS = 60_000
const FAILURE = { code: 'boom', message: 'it broke' }

const CLAIMS: Record<string, Case> = {
  'knows nothing of a key that was never used': async ({ store }) => {
    assert.equal(await store.look(newId()), null)
    assert.deepEqual(await store.history(newId()), [])
  },

  'lets the first claim run and makes all others wait': async ({ store }) => {
    const id = newId()
    const owned = await run(store, claimOf(id))
    assert.equal(owned.fence, 1)
    const seen = await store.look(id)
    assert.equal(seen?.record.state, 'in_progress')
    assert.equal(seen?.record.attempt_id, owned.attempt_id)
    const second = await store.claim(claimOf(id))
    assert.equal(second.kind, 'in_progress')
    assert.ok(second.kind === 'in_progress' && second.retry_after_ms > 0 && second.retry_after_ms <= LONG_MS)
  },

  'gives one of fifty simultaneous claims the right to run': async ({ store }) => {
    const id = newId()
    const decisions = await Promise.all(Array.from({ length: 50 }, () => store.claim(claimOf(id))))
    const kinds = decisions.map((decision) => decision.kind)
    assert.equal(kinds.filter((kind) => kind === 'run').length, 1)
    assert.equal(kinds.filter((kind) => kind === 'in_progress').length, 49)
  },

  'tells the same attempt again that it may run, because the first answer may have been lost': async ({
    store,
  }) => {
    const claim = claimOf(newId())
    const first = await run(store, claim)
    const again = await run(store, claim)
    assert.deepEqual(again, first)
  },

  'refuses another request under the same key in every state': async ({ store }) => {
    for (const end of ['in_progress', 'completed', 'retryable', 'unknown'] as const) {
      const id = newId()
      const owned = await run(store, claimOf(id, { request: 1 }))
      if (end === 'completed') await store.complete(owned, reply('{}'), LONG_MS)
      if (end === 'retryable') await store.release(owned, FAILURE, LONG_MS)
      if (end === 'unknown') await store.doubt(owned, FAILURE)
      assert.equal((await store.claim(claimOf(id, { request: 2 }))).kind, 'key_reused', end)
    }
  },

  'keeps accounts and operations apart': async ({ store }) => {
    const id = newId()
    await run(store, claimOf(id))
    assert.equal((await run(store, claimOf({ ...id, account: `${id.account}x` }))).fence, 1)
    assert.equal((await run(store, claimOf({ ...id, operation: `${id.operation}x` }))).fence, 1)
    assert.equal(await store.look({ ...id, account: 'somebody else' }), null)
  },

  'takes any text as account, operation and key': async ({ store }) => {
    const odd = `o'd"d\\ {},;$1 ${'\u{1F600}'} %s \n`
    const id = { account: odd, operation: `${odd}x`, key: `${odd}${randomUUID()}` }
    await run(store, claimOf(id))
    assert.equal((await store.look(id))?.record.state, 'in_progress')
    assert.equal(await store.look({ ...id, key: `${id.key} ` }), null)
  },
}

const ENDS: Record<string, Case> = {
  'replays a completed reply byte for byte': async ({ store }) => {
    const bodies = [Buffer.from('{"a":1}'), Buffer.alloc(0), Buffer.from([0, 1, 92, 120, 255, 0]), null]
    for (const body of bodies) {
      const id = newId()
      const owned = await run(store, claimOf(id))
      const given: Reply = {
        status: 204,
        headers: [
          ['b', '2'],
          ['a', 'ü"\\'],
        ],
        body,
        schema: 3,
      }
      await store.complete(owned, given, LONG_MS)
      const decision = await store.claim(claimOf(id))
      assert.equal(decision.kind, 'replay')
      assert.deepEqual(decision.kind === 'replay' && decision.record.reply, given)
    }
  },

  'counts retention from completion': async ({ store }) => {
    const id = newId()
    await store.complete(await run(store, claimOf(id)), reply('{}'), LONG_MS)
    const seen = await store.look(id)
    assert.ok(seen?.record.state === 'completed')
    assert.ok(Math.abs(seen.record.expires_at - seen.record.changed_at - LONG_MS) <= 1)
  },

  'runs again after a release, with a higher fence and a history': async ({ store }) => {
    const id = newId()
    const first = await run(store, claimOf(id))
    await store.release(first, FAILURE, LONG_MS)
    const second = await run(store, claimOf(id))
    assert.equal(second.fence, 2)
    const [past, ...rest] = await store.history(id)
    assert.deepEqual(rest, [])
    assert.equal(past?.attempt_id, first.attempt_id)
    assert.equal(past?.outcome, 'retryable')
    assert.deepEqual(past?.failure, FAILURE)
    assert.ok(past.started_at <= past.ended_at!)
  },

  'lets one of fifty simultaneous retries run': async ({ store }) => {
    const id = newId()
    await store.release(await run(store, claimOf(id)), FAILURE, LONG_MS)
    const decisions = await Promise.all(Array.from({ length: 50 }, () => store.claim(claimOf(id))))
    assert.equal(decisions.filter((decision) => decision.kind === 'run').length, 1)
    assert.equal((await store.look(id))?.record.fence, 2)
  },

  'never runs what is unknown': async ({ store }) => {
    const id = newId()
    await store.doubt(await run(store, claimOf(id)), FAILURE)
    for (const takeover of ['resume', 'doubt'] as const) {
      assert.equal((await store.claim(claimOf(id, { takeover }))).kind, 'unknown')
    }
  },

  'accepts the same end twice from the same attempt': async ({ store }) => {
    const ends: ((owned: Owned) => Promise<void>)[] = [
      (owned) => store.complete(owned, reply('{}'), LONG_MS),
      (owned) => store.release(owned, FAILURE, LONG_MS),
      (owned) => store.doubt(owned, FAILURE),
    ]
    for (const end of ends) {
      const owned = await run(store, claimOf(newId()))
      await end(owned)
      await end(owned)
    }
  },

  'lets an ended attempt change nothing more': async ({ store }) => {
    const id = newId()
    const owned = await run(store, claimOf(id))
    await store.complete(owned, reply('first'), LONG_MS)
    await assert.rejects(store.doubt(owned, FAILURE), isLeaseLost)
    await assert.rejects(store.release(owned, FAILURE, LONG_MS), isLeaseLost)
    await assert.rejects(store.extend(owned, LONG_MS), isLeaseLost)
    const seen = await store.look(id)
    assert.ok(seen?.record.state === 'completed')
    assert.equal(seen.record.reply.body?.toString(), 'first')
  },
}

const LEASES: Record<string, Case> = {
  'gives a record whose lease ran out to the next claim, and turns the late owner away': async ({
    store,
  }) => {
    const id = newId()
    const late = await run(store, claimOf(id, { lease_ms: 1 }))
    const owner = await runWhenFree(store, claimOf(id, { takeover: 'resume' }))
    assert.equal(owner.fence, late.fence + 1)
    await assert.rejects(store.complete(late, reply('late'), LONG_MS), isLeaseLost)
    await assert.rejects(store.release(late, FAILURE, LONG_MS), isLeaseLost)
    await assert.rejects(store.doubt(late, FAILURE), isLeaseLost)
    await assert.rejects(store.extend(late, LONG_MS), isLeaseLost)
    assert.equal((await store.look(id))?.record.state, 'in_progress')
    await store.complete(owner, reply('in time'), LONG_MS)
    const decision = await store.claim(claimOf(id))
    assert.equal(decision.kind === 'replay' && decision.record.reply.body?.toString(), 'in time')
    assert.equal((await store.history(id))[0]?.outcome, 'abandoned')
  },

  'marks a record unknown when its owner vanished and may not be followed': async ({ store }) => {
    const id = newId()
    const vanished = await run(store, claimOf(id, { lease_ms: 1 }))
    const decision = await claimWhenFree(store, claimOf(id, { takeover: 'doubt' }))
    assert.equal(decision.kind, 'vanished')
    const seen = await store.look(id)
    assert.equal(seen?.record.state, 'unknown')
    assert.equal(seen?.record.fence, vanished.fence)
    assert.equal((await store.claim(claimOf(id))).kind, 'unknown')
    await assert.rejects(store.complete(vanished, reply('late'), LONG_MS), isLeaseLost)
  },

  'keeps a record whose lease was extended': async ({ store }) => {
    const id = newId()
    const owned = await run(store, claimOf(id, { lease_ms: 5_000 }))
    await store.extend(owned, LONG_MS)
    const seen = await store.look(id)
    assert.ok(seen?.record.state === 'in_progress' && seen.record.lease_until - seen.now > 30_000)
  },

  'lets an owner finish after its lease as long as nobody took over': async ({ store }) => {
    const id = newId()
    const owned = await run(store, claimOf(id, { lease_ms: 1 }))
    await until(async () => {
      const seen = await store.look(id)
      return seen?.record.state === 'in_progress' && seen.record.lease_until < seen.now
    })
    await store.complete(owned, reply('{}'), LONG_MS)
    assert.equal((await store.look(id))?.record.state, 'completed')
  },
}

const TRANSACTIONS: Record<string, Case> = {
  'goes from none to completed in one step that nobody sees half done': async ({ store }) => {
    const attempt = attemptOf(newId())
    const end = await transact(store, attempt, async () => {
      assert.equal(await store.look(attempt.id), null)
      return reply('done')
    })
    assert.deepEqual(end, { end: 'committed' })
    const seen = await store.look(attempt.id)
    assert.equal(seen?.record.state, 'completed')
    assert.equal(seen?.record.fence, 1)
  },

  'conflicts with a record that came first': async ({ store }) => {
    const id = newId()
    await transact(store, attemptOf(id), async () => reply('first'))
    const second = await transact(store, attemptOf(id), async () => reply('second'))
    assert.deepEqual(second, { end: 'conflict' })
    const seen = await store.look(id)
    assert.equal(seen?.record.state === 'completed' && seen.record.reply.body?.toString(), 'first')
  },

  'leaves nothing of work that throws, and tells the error': async ({ store }) => {
    const attempt = attemptOf(newId())
    const error = new Error('no')
    const end = await transact(store, attempt, () => Promise.reject(error))
    assert.deepEqual(end, { end: 'failed', error })
    assert.equal(await store.look(attempt.id), null)
  },

  'leaves a retryable record only where there is none': async ({ store }) => {
    const attempt = attemptOf(newId())
    assert.equal(await store.leaveRetryable(attempt, FAILURE), true)
    assert.equal((await store.look(attempt.id))?.record.state, 'retryable')
    assert.equal(await store.leaveRetryable(attemptOf(attempt.id), FAILURE), false)
  },

  'completes a retryable record with a higher fence, once': async ({ store }) => {
    const id = newId()
    await store.leaveRetryable(attemptOf(id), FAILURE)
    const previous = (await store.look(id))!.record
    const again = { ...attemptOf(id), previous }
    assert.deepEqual(await transact(store, again, async () => reply('ok')), { end: 'committed' })
    assert.equal((await store.look(id))?.record.fence, 2)
    assert.equal((await store.history(id)).length, 1)
    const late = { ...attemptOf(id), previous }
    assert.deepEqual(await transact(store, late, async () => reply('late')), { end: 'conflict' })
    assert.equal(await store.leaveRetryable({ ...attemptOf(id), previous }, FAILURE), false)
  },

  'tells a committed attempt from one that was rolled back': async ({ store }) => {
    const committed = attemptOf(newId())
    await transact(store, committed, async () => reply('ok'))
    assert.equal(await store.settle(committed), 'committed')
    assert.equal(await store.settle(attemptOf(committed.id)), 'rolled_back')
    const never = attemptOf(newId())
    assert.equal(await store.settle(never), 'rolled_back')
    assert.equal(await store.settle(never), 'rolled_back')
    assert.deepEqual(await transact(store, never, async () => reply('late')), { end: 'conflict' })
  },

  'settles an attempt that set out from a retryable record': async ({ store }) => {
    const id = newId()
    await store.leaveRetryable(attemptOf(id), FAILURE)
    const previous = (await store.look(id))!.record
    const committed = { ...attemptOf(id), previous }
    const never = { ...attemptOf(id), previous }
    await transact(store, committed, async () => reply('ok'))
    assert.equal(await store.settle(committed), 'committed')
    assert.equal(await store.settle(never), 'rolled_back')
  },

  'says busy to a second exclusive transaction without running it': async ({ store }) => {
    const id = newId()
    let ran = 0
    const exclusive = () => ({ ...attemptOf(id), exclusive: true })
    const first = await transact(store, exclusive(), async () => {
      const second = await transact(store, exclusive(), async () => {
        ran += 1
        return reply('second')
      })
      assert.deepEqual(second, { end: 'busy' })
      return reply('first')
    })
    assert.deepEqual(first, { end: 'committed' })
    assert.equal(ran, 0)
  },
}

const WITHIN: Record<string, Case> = {
  'completes inside a transaction of the caller': async ({ store, begin }) => {
    const claim = claimOf(newId())
    const { tx, commit } = await begin()
    const end = await store.within(tx, claim, LONG_MS, async () => reply('inside'))
    assert.equal(end.end, 'completed')
    await commit()
    const decision = await store.claim(claimOf(claim.id))
    assert.equal(decision.kind === 'replay' && decision.record.reply.body?.toString(), 'inside')
  },

  'leaves nothing when the work throws, and lets the caller go on': async ({ store, begin }) => {
    const claim = claimOf(newId())
    const { tx, commit } = await begin()
    await assert.rejects(
      store.within(tx, claim, LONG_MS, () => Promise.reject(new Error('no'))),
      /no/,
    )
    const other = claimOf(newId())
    assert.equal((await store.within(tx, other, LONG_MS, async () => reply('{}'))).end, 'completed')
    await commit()
    assert.equal(await store.look(claim.id), null)
    assert.equal((await store.look(other.id))?.record.state, 'completed')
  },

  'decides inside a transaction as outside': async ({ store, begin }) => {
    const id = newId()
    await store.complete(await run(store, claimOf(id)), reply('stored'), LONG_MS)
    const { tx, commit } = await begin()
    const replay = await store.within(tx, claimOf(id), LONG_MS, () => Promise.reject(new Error('ran')))
    assert.equal(replay.end === 'decided' && replay.decision.kind, 'replay')
    const reused = await store.within(tx, claimOf(id, { request: 2 }), LONG_MS, () =>
      Promise.reject(new Error('ran')),
    )
    assert.equal(reused.end === 'decided' && reused.decision.kind, 'key_reused')
    await commit()
  },

  'runs a retryable record again inside a transaction': async ({ store, begin }) => {
    const id = newId()
    await store.release(await run(store, claimOf(id)), FAILURE, LONG_MS)
    const { tx, commit } = await begin()
    assert.equal((await store.within(tx, claimOf(id), LONG_MS, async () => reply('{}'))).end, 'completed')
    await commit()
    const seen = await store.look(id)
    assert.equal(seen?.record.state, 'completed')
    assert.equal(seen?.record.fence, 2)
    assert.equal((await store.history(id)).length, 1)
  },
}

function newId(): RecordId {
  return { account: 'acct_1', operation: 'payments.create', key: randomUUID() }
}

function reply(body: string): Reply {
  return { status: 200, headers: [], body: Buffer.from(body), schema: 1 }
}

function claimOf(
  id: RecordId,
  given: { request?: number; lease_ms?: number; takeover?: 'resume' | 'doubt' } = {},
): ClaimRequest {
  const digest = Buffer.alloc(32, given.request ?? 1)
  return {
    id,
    claimant: { attempt_id: randomUUID(), owner: 'conformance', fingerprint: { key_id: 'k1', digest } },
    matches: (stored) => stored.key_id === 'k1' && stored.digest.equals(digest),
    lease_ms: given.lease_ms ?? LONG_MS,
    takeover: given.takeover ?? 'resume',
  }
}

function attemptOf(id: RecordId): TransactionAttempt {
  const { claimant } = claimOf(id)
  return { id, claimant, previous: null, retention_ms: LONG_MS, isolation: null, exclusive: false }
}

function transact(store: Store<Queryable>, attempt: TransactionAttempt, work: () => Promise<Reply>) {
  return store.transact(attempt, work, () => {})
}

async function run(store: Store<Queryable>, claim: ClaimRequest): Promise<Owned> {
  return ownedBy(await store.claim(claim), claim)
}

async function runWhenFree(store: Store<Queryable>, claim: ClaimRequest): Promise<Owned> {
  return ownedBy(await claimWhenFree(store, claim), claim)
}

function ownedBy(decision: Decision, claim: ClaimRequest): Owned {
  assert.equal(decision.kind, 'run')
  assert.ok(decision.kind === 'run')
  return { id: claim.id, fence: decision.record.fence, attempt_id: claim.claimant.attempt_id }
}

/** Asks until the store's own clock says that the lease is over. */
async function claimWhenFree(store: Store<Queryable>, claim: ClaimRequest): Promise<Decision> {
  let decision = await store.claim(claim)
  await until(async () => {
    if (decision.kind === 'in_progress') decision = await store.claim(claim)
    return decision.kind !== 'in_progress'
  })
  return decision
}

async function until(fact: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 10_000; tries += 1) {
    if (await fact()) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.fail('the fact that was waited for did not come')
}

function isLeaseLost(error: unknown): boolean {
  return error instanceof OnlyonceError && error.code === 'lease_lost'
}
