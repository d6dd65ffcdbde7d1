/**
 * What users test with: a proxy that harms connections, crash points with a runner that kills at each of
 * them, and the contract of stores as a suite.
 */
export {
  type CrashPoint,
  type CrashSite,
  crashAt,
  crashPointFromEnvironment,
  type ReachedPoint,
  recordPoints,
  reportPoints,
} from './crash.ts'
export { type CrashEverywhereOptions, type CrashTable, crashEverywhere } from './crash-everywhere.ts'
export { type ProgramOptions, type ProgramResult, runUntilCrash } from './crash-run.ts'
export {
  type FaultProxy,
  type FaultProxyOptions,
  type ProxyConnection,
  startFaultProxy,
} from './fault-proxy.ts'
export type {
  BlackHole,
  CommitCut,
  CutAtCommit,
  DelayBytes,
  Direction,
  Fault,
  HalfClose,
  Recurrence,
  RefuseConnection,
  ResetConnection,
  ServerCloses,
  TruncateAnswer,
} from './faults.ts'
export type { ConnectionState, ProxyEvent, ProxyStats } from './proxy-facts.ts'
export { type Random, random } from './random.ts'
export { type StoreUnderTest, storeConformance, type TestRunner } from './store-conformance/index.ts'
export type { WaitOptions } from './waiters.ts'
