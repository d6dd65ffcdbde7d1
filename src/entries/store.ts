/** Types for authors of stores. `storeConformance` of `onlyonce/testing` is the suite that a store has to pass. */
export type { Stored } from '../record/value.ts'
export type { CrashPoint, Isolation, OpenTransaction, Queryable, Store } from '../store/contract.ts'
