import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { OnlyonceError } from '../../core/errors.ts'
import type { Decision, RecordId, Reply } from '../../record/index.ts'
import type {
  ClaimRequest,
  KeyIds,
  Owned,
  Queryable,
  Store,
  TransactionAttempt,
} from '../../store/contract.ts'

/** A store under test, and how to begin a transaction of one's own in its database. */
export interface StoreUnderTest {
  readonly store: Store<Queryable>
  begin(): Promise<{ readonly tx: Queryable; commit(): Promise<void>; rollback(): Promise<void> }>
}

export type Cases = Readonly<Record<string, (underTest: StoreUnderTest) => Promise<void>>>

/**
 * The ids of all keys that records of the suite name, so that those which one test leaves behind keep no other
 * from starting. A store that seals replies by itself has to do it with the first of `reply`.
 */
export const KEYS = { fingerprint: ['k1', 'k2'], reply: ['k8', 'k7'] } as const satisfies KeyIds

export const LONG_MS = 60_000
export const FAILURE = { code: 'boom', message: 'it broke' }

export function newId(): RecordId {
  return { account: 'acct_1', operation: 'payments.create', key: randomUUID() }
}

export function reply(body: string): Reply {
  return { status: 200, headers: [], body: Buffer.from(body), schema: 1, sealedBy: null }
}

export function claimOf(
  id: RecordId,
  given: {
    request?: number
    keyId?: string
    leaseMs?: number
    takeover?: 'resume' | 'doubt'
    kind?: ClaimRequest['claimant']['kind']
  } = {},
): ClaimRequest {
  const keyId = given.keyId ?? KEYS.fingerprint[0]
  const digest = Buffer.alloc(32, given.request ?? 1)
  return {
    id,
    claimant: {
      kind: given.kind ?? 'handler',
      attemptId: randomUUID(),
      owner: 'conformance',
      fingerprint: { keyId, digest },
      trace: null,
    },
    matches: (stored) => stored.keyId === keyId && stored.digest.equals(digest),
    leaseMs: given.leaseMs ?? LONG_MS,
    takeover: given.takeover ?? 'resume',
  }
}

export function attemptOf(id: RecordId): TransactionAttempt {
  const { claimant } = claimOf(id)
  return {
    id,
    claimant,
    previous: null,
    retentionMs: LONG_MS,
    isolation: null,
    exclusive: false,
    strictTx: false,
    timeMaxMs: 30_000,
  }
}

export function transact(store: Store<Queryable>, attempt: TransactionAttempt, work: () => Promise<Reply>) {
  return store.transact(attempt, work, () => {})
}

export async function run(store: Store<Queryable>, claim: ClaimRequest): Promise<Owned> {
  return ownedBy(await store.claim(claim), claim)
}

export async function runWhenFree(store: Store<Queryable>, claim: ClaimRequest): Promise<Owned> {
  return ownedBy(await claimWhenFree(store, claim), claim)
}

export function ownedBy(decision: Decision, claim: ClaimRequest): Owned {
  assert.equal(decision.kind, 'run')
  assert.ok(decision.kind === 'run')
  return { id: claim.id, fence: decision.record.fence, attemptId: claim.claimant.attemptId }
}

/** Asks until the store's own clock says that the lease is over. */
export async function claimWhenFree(store: Store<Queryable>, claim: ClaimRequest): Promise<Decision> {
  let decision = await store.claim(claim)
  await until(async () => {
    if (decision.kind === 'in_progress') decision = await store.claim(claim)
    return decision.kind !== 'in_progress'
  })
  return decision
}

export async function until(fact: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 10_000; tries += 1) {
    if (await fact()) return
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.fail('the fact that was waited for did not come')
}

export function isLeaseLost(error: unknown): boolean {
  return error instanceof OnlyonceError && error.code === 'lease_lost'
}
