import { createHash } from 'node:crypto'
import { LIMITS } from '../core/limits.ts'
import { maskBeginning } from '../key/index.ts'
import type { Failure, RecordId } from '../record/index.ts'
import type { Signal } from './signals.ts'

export type LogFields = Readonly<Record<string, string | number | boolean | null>>

/**
 * A key as it may be shown: its first four characters and a short digest, by which lines about the same key are
 * found, and nothing that could be sent again.
 *
 * @example
 * redactKey('9f1c2d7e-…') // '9f1c…7d2b9c04e1aa'
 */
export function redactKey(key: string): string {
  return `${key.slice(0, 4)}…${digestKey(key)}`
}

/** The digest alone, for where even four characters are too many. */
export function digestKey(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, LIMITS.keyDigestLength)
}

/** A text from outside, as it may be shown: without card numbers, and short. */
export function showText(text: string): string {
  return maskBeginning(text, LIMITS.errorMessageLengthMax)
}

/**
 * A signal as flat fields that are safe to log. Members are named one by one: what is not named here, such as the
 * input, the reply, its headers or the fingerprint, is in no signal and in no line.
 *
 * @example
 * logger.warn(logFields(signal), 'a key was reused')
 */
export function logFields(signal: Signal): LogFields {
  switch (signal.signal) {
    case 'call_started':
    case 'zombie_key':
      return { signal: signal.signal, ...callFields(signal) }
    case 'call_ended': {
      const { outcome, code, fence, joined } = signal
      const durationMs = Math.round(signal.durationMs)
      const told = { outcome, code, fence, joined, duration_ms: durationMs }
      return { signal: signal.signal, ...callFields(signal), ...told, ...failureFields(signal.failure) }
    }
    case 'reserved':
      return { signal: signal.signal, ...callFields(signal), kind: signal.kind, fence: signal.fence }
    case 'key_misuse':
      return { signal: signal.signal, security: true, ...callFields(signal) }
    case 'lease_lost':
      return { signal: signal.signal, ...callFields(signal), fence: signal.fence }
    case 'handler_failed': {
      const { fence, status } = signal
      return { signal: signal.signal, ...callFields(signal), fence, status, ...failureFields(signal.failure) }
    }
    case 'operation_failed': {
      const step = signal.step === null ? null : showText(signal.step)
      return { signal: signal.signal, ...callFields(signal), step, ...failureFields(signal.failure) }
    }
    case 'tx_unused':
      return { signal: signal.signal, ...callFields(signal), first: signal.first }
    case 'tx_error_ignored': {
      const { first, failure } = signal
      return { signal: signal.signal, ...callFields(signal), first, ...failureFields(failure) }
    }
    case 'herd':
      return { signal: signal.signal, ...callFields(signal), size: signal.size }
    case 'not_admitted':
      return { signal: signal.signal, ...callFields(signal), code: signal.code }
    case 'store_error': {
      const failure = { code: signal.code, message: signal.message }
      const { step, reason } = signal
      return { signal: signal.signal, step, ...idFields(signal.id), reason, ...failureFields(failure) }
    }
    case 'mistake': {
      const { code, message, first } = signal
      return {
        signal: signal.signal,
        route: showText(signal.route),
        first,
        ...failureFields({ code, message }),
      }
    }
    case 'reconcile_scheduled':
    case 'reconcile_failed':
    case 'parked':
      return { signal: signal.signal, ...idFields(signal.id), ...failureFields(signal.failure) }
    case 'unattended':
    case 'void_call_happened':
      return { signal: signal.signal, ...idFields(signal.id) }
    case 'reconcile_resolved':
      return { signal: signal.signal, ...idFields(signal.id), state: signal.state }
    case 'ttl_pruned':
      return { signal: signal.signal, count: signal.count }
    case 'worker_failed': {
      const { worker, reason, code, message } = signal
      return { signal: signal.signal, worker, reason, ...failureFields({ code, message }) }
    }
    case 'store_away': {
      const { reason, failures, code, message } = signal
      const awayMs = Math.round(signal.awayMs)
      return { signal: signal.signal, reason, failures, away_ms: awayMs, ...failureFields({ code, message }) }
    }
    case 'store_back':
      return {
        signal: signal.signal,
        failures: signal.failures,
        away_ms: Math.round(signal.awayMs),
      }
    case 'stuck':
      return { signal: signal.signal, older_than_ms: signal.olderThanMs, ...stuckFields(signal.stuck) }
    case 'outbox_lag': {
      const { count, oldestAgeMs, parked } = signal
      const destination = showText(signal.destination)
      return { signal: signal.signal, destination, count, oldest_age_ms: oldestAgeMs, parked }
    }
    case 'outbox_delivered':
      return { signal: signal.signal, destination: showText(signal.destination), count: signal.count }
    case 'outbox_failed': {
      const told = { destination: showText(signal.destination), kind: signal.kind }
      return {
        signal: signal.signal,
        ...told,
        ...eventFields(signal.event),
        ...failureFields(signal.failure),
      }
    }
    case 'job_ended': {
      const { outcome, attempts, failure } = signal
      const of = { job: showText(signal.job), account: showText(signal.account), job_id: signal.jobId }
      const durationMs = Math.round(signal.durationMs)
      return {
        signal: signal.signal,
        ...of,
        outcome,
        attempts,
        duration_ms: durationMs,
        ...failureFields(failure),
      }
    }
    case 'webhook_attempted': {
      const { outcome, attempts, status, failure } = signal
      const of = { account: showText(signal.account), endpoint: signal.endpoint, message: signal.message }
      const told = { type: showText(signal.type), outcome, attempts, status }
      const durationMs = Math.round(signal.durationMs)
      return { signal: signal.signal, ...of, ...told, duration_ms: durationMs, ...failureFields(failure) }
    }
    case 'cut_off': {
      const { transactions, handlers, operations } = signal
      return { signal: signal.signal, transactions, handlers, operations }
    }
    case 'webhook_disabled':
      return { signal: signal.signal, account: showText(signal.account), endpoint: signal.endpoint }
    default:
      return signal satisfies never
  }
}

function callFields({ protection, id }: { readonly protection: string; readonly id: RecordId }): LogFields {
  return { protection, ...idFields(id) }
}

function eventFields(event: Extract<Signal, { signal: 'outbox_failed' }>['event']): LogFields {
  if (event === null) return {}
  return { account: showText(event.account), event: event.id, type: showText(event.type) }
}

function idFields(id: RecordId | null): LogFields {
  if (id === null) return {}
  return { account: showText(id.account), operation: showText(id.operation), key: redactKey(id.key) }
}

function failureFields(failure: Failure | null): LogFields {
  if (failure === null) return {}
  return { error_code: showText(failure.code), error_message: showText(failure.message) }
}

function stuckFields({
  in_progress: inProgress,
  unknown,
  parked,
}: Extract<Signal, { signal: 'stuck' }>['stuck']): LogFields {
  return {
    in_progress: inProgress.count,
    in_progress_oldest_age_ms: inProgress.oldestAgeMs,
    unknown: unknown.count,
    unknown_oldest_age_ms: unknown.oldestAgeMs,
    parked: parked.count,
    parked_oldest_age_ms: parked.oldestAgeMs,
  }
}
