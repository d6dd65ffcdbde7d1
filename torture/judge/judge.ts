import { answersAreDocumented, notExecutedIsTrue, repliesAgree } from './answers.ts'
import type { History, Violation } from './history.ts'
import { ledgerEqualsJournal, onceCharged, sumsHold } from './money.ts'
import { eventsArrive, everythingEnds, nothingLeaks, processesLive, tenantsStayApart } from './service.ts'

/** Every invariant, by the name under which the guarantees page explains it. */
export const RULES: Readonly<Record<string, (history: History) => readonly string[]>> = {
  'charged once': onceCharged,
  'replies agree': repliesAgree,
  'not executed is true': notExecutedIsTrue,
  'sums hold': sumsHold,
  'ledger equals journal': ledgerEqualsJournal,
  'everything ends': everythingEnds,
  'answers are documented': answersAreDocumented,
  'processes live': processesLive,
  'events arrive': eventsArrive,
  'tenants stay apart': tenantsStayApart,
  'no card number is kept': nothingLeaks,
}

/** Judges a run. An empty list means that every invariant held. */
export function judge(history: History): readonly Violation[] {
  return Object.entries(RULES).flatMap(([rule, check]) => check(history).map((what) => ({ rule, what })))
}
