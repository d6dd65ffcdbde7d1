import { OnlyonceError } from '../core/errors.ts'
import { type LogFields, logFields } from './fields.ts'
import type { Observer, Signal } from './signals.ts'

/** A logger in the shape of pino's: fields first, then the message. */
export interface Logger {
  debug?(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
}

const LEVELS = ['info', 'warn', 'error'] as const

type Line = readonly [level: 'debug' | 'info' | 'warn' | 'error', message: string]

/**
 * Logs what an operator should know. Ordinary calls are one line each at `debug`; where the logger has no such level
 * they are not logged at all.
 *
 * @example
 * const once = onlyonce({ store, secret, observe: logTo(pino()) })
 */
export function logTo(logger: Logger): Observer {
  if (!LEVELS.every((level) => typeof logger?.[level] === 'function'))
    throw new OnlyonceError('option_invalid', {
      detail: 'logTo() takes a logger with info, warn and error, such as that of pino.',
    })
  let away = false
  return {
    signal(signal) {
      if (signal.signal === 'store_away' || signal.signal === 'store_back')
        away = signal.signal === 'store_away'
      const line = away && isOfStoreAway(signal) ? TOLD_ALREADY : lineOf(signal)
      if (line === null) return
      const [level, message] = line
      // A logger that ships its lines may give a promise: the code that asks observers hears when it rejects.
      return logger[level]?.(logFields(signal), message)
    },
  }
}

/** How loud a signal is, and what it says to a person; null for what another line says already. */
function lineOf(signal: Signal): Line | null {
  switch (signal.signal) {
    case 'call_started':
      return null
    case 'call_ended':
      return signal.code === 'outcome_unknown'
        ? ['warn', 'it could not be found out whether a call took effect']
        : ['debug', 'a protected call ended']
    case 'reserved':
      if (signal.kind === 'unknown') return ['warn', 'a call met a record whose outcome is unknown']
      return signal.kind === 'parked' ? ['warn', 'a call met a record that waits for an operator'] : null
    case 'key_misuse':
      return ['warn', 'a key was used again for another request']
    case 'zombie_key':
      return ['warn', 'a record was found in progress whose owner has vanished']
    case 'tx_unused':
      return [
        signal.first ? 'warn' : 'debug',
        'a transaction ended without a statement on its tx: what it wrote elsewhere is not protected',
      ]
    case 'tx_error_ignored':
      return [
        signal.first ? 'error' : 'warn',
        'a statement of a transaction failed and its function went on, so everything was rolled back',
      ]
    case 'handler_failed':
      return ['error', 'a handler failed and is not run again: whether it took effect is not known']
    case 'operation_failed':
      return [
        isOfDatabase(signal.failure.code) ? 'error' : 'warn',
        'an operation stopped before its end; the same request may run again',
      ]
    case 'lease_lost':
      return ['warn', 'an owner found that its record has another owner']
    case 'herd':
      return ['debug', 'several callers shared one flight']
    case 'store_error':
      if (signal.reason !== null) return TOLD_ALREADY
      // Collisions are the everyday life of a database, and are run again.
      return signal.code.startsWith('40')
        ? ['debug', 'a transaction collided with another']
        : ['error', 'the store failed']
    case 'store_away':
      return ['error', 'the store cannot be used']
    case 'store_back':
      return ['warn', 'the store can be used again']
    case 'mistake':
      return [
        signal.first ? 'error' : 'debug',
        'a route cannot serve: its code, its settings or its pool are wrong',
      ]
    case 'reconcile_scheduled':
      return ['warn', 'the outcome of a record is unknown and has to be found out']
    case 'reconcile_resolved':
      return ['info', 'a record whose outcome was open was settled']
    case 'reconcile_failed':
      return ['error', 'an unknown record could not be settled']
    case 'parked':
      return ['error', 'a record was parked and waits for an operator']
    case 'unattended':
      return ['error', 'an operation waits for a worker, and no worker takes it']
    case 'void_call_happened':
      return ['error', 'a call that was declared void has happened']
    case 'ttl_pruned':
      return signal.count > 0 ? ['info', 'records were removed after their retention'] : null
    case 'worker_failed':
      return ['error', 'a batch of a worker failed and is tried again']
    case 'stuck': {
      const { in_progress: inProgress, unknown, parked } = signal.stuck
      return inProgress.count + unknown.count + parked.count > 0
        ? ['error', 'records are stuck: they stay unfinished']
        : null
    }
    case 'outbox_lag':
      return null
    case 'outbox_delivered':
      return ['debug', 'events were delivered']
    case 'outbox_failed':
      return FAILED[signal.kind]
    case 'job_ended':
      if (signal.outcome === 'parked') return ['error', 'a job failed too often and waits for an operator']
      return signal.outcome === 'again'
        ? ['warn', 'a job failed and is tried again']
        : ['debug', 'a job is done']
    case 'webhook_attempted':
      if (signal.outcome === 'failed') return ['error', 'a webhook could not be delivered and is given up']
      return signal.outcome === 'again'
        ? ['warn', 'a webhook was not taken and is tried again']
        : ['debug', 'a webhook was delivered']
    case 'not_admitted':
      return ['debug', 'a request was not admitted']
    case 'cut_off':
      return ['warn', 'close() waited no longer, and work was cut off']
    case 'webhook_disabled':
      return ['warn', 'an endpoint of webhooks says that it is gone and was disabled']
    default:
      return signal satisfies never
  }
}

/** A store that is away fails every batch of every worker. */
function isOfStoreAway(signal: Signal): boolean {
  return signal.signal === 'worker_failed' && signal.reason !== null
}

const TOLD_ALREADY: Line = [
  'debug',
  'the store could not be used: one of the failures that store_away counts',
]

/** PostgreSQL's five characters. Collisions pass by themselves. */
function isOfDatabase(code: string): boolean {
  return /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('40')
}

const FAILED: Readonly<Record<Extract<Signal, { signal: 'outbox_failed' }>['kind'], Line>> = {
  away: ['warn', 'a destination took no events and is asked again later'],
  gone: ['error', 'a destination says that it is gone'],
  held: ['warn', 'a destination did not take an event, which is tried again'],
  parked: ['error', 'an event was refused too often and waits for an operator'],
}
