/** Metrics, traces and log lines: one vocabulary of signals, and what is made from it. */
export { type CallSignals, NO_SIGNALS, type Origin, signalsOf } from './call-signals.ts'
export { codeOf, reasonOf } from './code.ts'
export { type LogFields, logFields } from './fields.ts'
export { type Logger, logTo } from './log.ts'
export { Observers } from './observers.ts'
export type {
  CallEnded,
  CallOutcome,
  CallTrace,
  JobEnded,
  Observer,
  OutboxFailed,
  Protection,
  Reserved,
  Signal,
  StoreStep,
  TracedCall,
  TraceLink,
  WebhookAttempted,
} from './signals.ts'
export { StuckAlarm } from './stuck-alarm.ts'
export { UnattendedWatch } from './unattended-watch.ts'
export { WatchedStore } from './watched-store.ts'
