import { LIMITS } from '../../core/limits.ts'
import { type Statement, statement } from './flush.ts'
import * as claim from './sql/claim.ts'
import * as decisions from './sql/decisions.ts'
import * as discard from './sql/discard.ts'
import * as evidence from './sql/evidence.ts'
import * as finish from './sql/finish.ts'
import * as group from './sql/group.ts'
import * as keyIds from './sql/key-ids.ts'
import * as locks from './sql/locks.ts'
import * as look from './sql/look.ts'
import * as madeSecrets from './sql/made-secrets.ts'
import * as operations from './sql/operations.ts'
import * as reap from './sql/reap.ts'
import * as recovery from './sql/recovery.ts'
import * as rights from './sql/rights.ts'
import * as session from './sql/session.ts'
import * as stuck from './sql/stuck.ts'

export const BEGIN = {
  default: statement('BEGIN'),
  'read committed': statement('BEGIN ISOLATION LEVEL READ COMMITTED'),
  'repeatable read': statement('BEGIN ISOLATION LEVEL REPEATABLE READ'),
  serializable: statement('BEGIN ISOLATION LEVEL SERIALIZABLE'),
} as const
export const COMMIT = statement('COMMIT')
export const ROLLBACK = statement('ROLLBACK')
export const TRY_LOCK = statement(session.TRY_LOCK)
export const SET_LAST_WAIT = statement(session.setLockWait(LIMITS.lockWaitLastMs))

export type Statements = Readonly<Record<keyof ReturnType<typeof texts>, Statement>>

/** Every statement on the tables of one schema, made once. */
export function statementsFor(schema: string): Statements {
  const made = Object.entries(texts(schema)).map(([name, text]) => [name, statement(text)])
  return Object.fromEntries(made) as Statements
}

function texts(schema: string) {
  return {
    lookOne: look.lookOne(schema),
    lookOneAsText: look.lookOneAsText(schema),
    lookHistory: look.lookHistory(schema),
    lookAttempt: look.lookAttempt(schema),
    countStuck: stuck.countStuck(schema),
    insertInProgress: claim.insertInProgress(schema),
    insertInProgressWithin: claim.insertInProgressWithin(schema),
    insertManyInProgress: group.insertManyInProgress(schema),
    insertCompleted: claim.insertCompleted(schema),
    insertRetryable: claim.insertRetryable(schema),
    supersede: claim.supersede(schema),
    complete: finish.complete(schema),
    completeWithin: finish.completeWithin(schema),
    completeMany: group.completeMany(schema),
    release: finish.release(schema),
    forget: finish.forget(schema),
    doubt: finish.doubt(schema),
    doubtVanished: finish.doubtVanished(schema),
    extend: finish.extend(schema),
    findUnattended: recovery.findUnattended(schema),
    vanish: recovery.vanish(schema),
    takeLook: recovery.takeLook(schema),
    endLook: recovery.endLook(schema),
    findReapable: reap.findReapable(schema),
    deleteReapable: reap.deleteReapable(schema),
    expireReapable: reap.expireReapable(schema),
    findOldEvidence: reap.findOldEvidence(schema),
    deleteEvidence: reap.deleteEvidence(schema),
    lookSummary: decisions.lookSummary(schema),
    lookForDecision: decisions.lookForDecision(schema),
    listUnfinished: decisions.listUnfinished(schema),
    listOfAccount: decisions.listOfAccount(schema),
    listFailed: decisions.listFailed(schema),
    listOfKey: decisions.listOfKey(schema),
    lookAudit: decisions.lookAudit(schema),
    decide: decisions.decide(schema),
    discardResult: discard.discardResult(schema),
    lookDiscarded: discard.lookDiscarded(schema),
    insertLock: locks.insertLock(schema),
    takeLock: locks.takeLock(schema),
    lookLock: locks.lookLock(schema),
    extendLock: locks.extendLock(schema),
    releaseLock: locks.releaseLock(schema),
    assertLock: locks.assertLock(schema),
    findMissingRights: rights.findMissingRights(schema),
    readKeyIds: keyIds.readKeyIds(schema),
    findNamedKeys: keyIds.findNamedKeys(schema),
    insertKeyIds: keyIds.insertKeyIds(schema),
    deleteKeyId: keyIds.deleteKeyId(schema),
    readMadeSecret: madeSecrets.readMadeSecret(schema),
    insertMadeSecret: madeSecrets.insertMadeSecret(schema),
    insertBegun: operations.insertBegun(schema),
    lockOwned: operations.lockOwned(schema),
    lockOwnedAt: operations.lockOwnedAt(schema),
    writePointsAt: operations.writePointsAt(schema),
    finishOperationAt: operations.finishOperationAt(schema),
    writePoints: operations.writePoints(schema),
    finishOperation: operations.finishOperation(schema),
    lockToSettle: operations.lockToSettle(schema),
    takeOver: operations.takeOver(schema),
    lookProgress: operations.lookProgress(schema),
    lookNeeds: operations.lookNeeds(schema),
    doubtOperation: operations.doubtOperation(schema),
    parkOperation: operations.parkOperation(schema),
    keepFor: operations.keepFor(schema),
    findAbandoned: operations.findAbandoned(schema),
    findDue: operations.findDue(schema),
    findLongestWaiting: operations.findLongestWaiting(schema),
    insertEvidence: evidence.insertEvidence(schema),
    insertSignedEvidence: evidence.insertSignedEvidence(schema),
    findVoidCall: evidence.findVoidCall(schema),
    hurryRecord: evidence.hurryRecord(schema),
    hurry: evidence.hurry(schema),
    findEvidence: evidence.findEvidence(schema),
    refuseEvidence: evidence.refuseEvidence(schema),
    findWaiting: evidence.findWaiting(schema),
  }
}
