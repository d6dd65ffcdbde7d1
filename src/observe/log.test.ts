import { expect, it } from 'vitest'
import { type Logger, logTo } from './log.ts'
import type { CallEnded, Signal } from './signals.ts'

const id = { account: 'acct_1', operation: 'transfers.create', key: 'a-key-of-some-length' }
const of_call = { protection: 'handler', id } as const
const failure = { code: 'c', message: 'm' }
const none = { count: 0, oldest_age_ms: 0 }
const some = { count: 1, oldest_age_ms: 5_000_000 }
const ended: CallEnded = {
  signal: 'call_ended',
  ...of_call,
  outcome: 'executed',
  failure: null,
  code: null,
  fence: 1,
  joined: false,
  duration_ms: 1,
}
const error = { signal: 'store_error', step: 'look', message: '', id } as const
const stuck = { signal: 'stuck', older_than_ms: 1 } as const

const outbox_failed = { signal: 'outbox_failed', destination: 'd', failure, event: null } as const
const job = { job: 'j', account: 'a', job_id: 'job_1', attempts: 1 }
const webhook = {
  account: 'acct_1',
  endpoint: 'we_1',
  message: 'evt_1',
  type: 't',
  attempts: 1,
  status: null,
}
const webhook_attempted = { signal: 'webhook_attempted', ...webhook, failure: null, duration_ms: 1 } as const
const job_ended = { signal: 'job_ended', ...job, failure: null, duration_ms: 1 } as const

const LEVELS: readonly [Signal, string | null][] = [
  [{ signal: 'call_started', ...of_call }, null],
  [ended, 'debug'],
  [{ ...ended, outcome: 'failed', code: 'thrown' }, 'debug'],
  [{ ...ended, outcome: 'failed', code: 'outcome_unknown' }, 'warn'],
  [{ signal: 'reserved', ...of_call, kind: 'created', fence: 1 }, null],
  [{ signal: 'reserved', ...of_call, kind: 'replay', fence: 1 }, null],
  [{ signal: 'reserved', ...of_call, kind: 'unknown', fence: 1 }, 'warn'],
  [{ signal: 'reserved', ...of_call, kind: 'parked', fence: 1 }, 'warn'],
  [{ signal: 'key_misuse', security: true, ...of_call }, 'warn'],
  [{ signal: 'zombie_key', ...of_call }, 'warn'],
  [{ signal: 'tx_unused', ...of_call, first: true }, 'warn'],
  [{ signal: 'tx_error_ignored', ...of_call, first: true, failure }, 'error'],
  [{ signal: 'lease_lost', ...of_call, fence: 1 }, 'warn'],
  [{ signal: 'mistake', route: 'r', code: 'c', message: 'm', first: true }, 'error'],
  [{ signal: 'mistake', route: 'r', code: 'c', message: 'm', first: false }, 'debug'],
  [{ signal: 'handler_failed', ...of_call, failure, status: 500, fence: 1 }, 'error'],
  [{ signal: 'operation_failed', ...of_call, step: 's', failure }, 'warn'],
  [{ signal: 'operation_failed', ...of_call, step: 's', failure: { ...failure, code: '42501' } }, 'error'],
  [{ signal: 'operation_failed', ...of_call, step: 's', failure: { ...failure, code: '40001' } }, 'warn'],
  [{ signal: 'herd', ...of_call, size: 2 }, 'debug'],
  [{ signal: 'not_admitted', ...of_call, code: 'rate_limited' }, 'debug'],
  [{ ...error, code: 'store_unavailable', reason: 'reset' }, 'debug'],
  [{ ...error, code: '42P01', reason: null }, 'error'],
  [{ ...error, code: '40001', reason: null }, 'debug'],
  [{ signal: 'store_away', code: 'c', reason: 'reset', message: 'm', failures: 1, away_ms: 0 }, 'error'],
  [{ signal: 'store_back', failures: 1, away_ms: 1 }, 'warn'],
  [
    { signal: 'worker_failed', worker: 'w', code: 'store_unavailable', reason: 'reset', message: '' },
    'error',
  ],
  [{ signal: 'reconcile_scheduled', id, failure }, 'warn'],
  [{ signal: 'reconcile_failed', id, failure }, 'error'],
  [{ signal: 'reconcile_resolved', id, state: 'completed' }, 'info'],
  [{ signal: 'parked', id, failure }, 'error'],
  [{ signal: 'unattended', id }, 'error'],
  [{ signal: 'void_call_happened', id, call_key: 'the-key-of-a-call' }, 'error'],
  [{ signal: 'ttl_pruned', count: 0 }, null],
  [{ signal: 'ttl_pruned', count: 1 }, 'info'],
  [{ signal: 'outbox_lag', destination: 'd', count: 1, oldest_age_ms: 1, parked: 0 }, null],
  [{ signal: 'outbox_delivered', destination: 'd', count: 1 }, 'debug'],
  [{ ...outbox_failed, kind: 'away' }, 'warn'],
  [{ ...outbox_failed, kind: 'held' }, 'warn'],
  [{ ...outbox_failed, kind: 'gone' }, 'error'],
  [{ ...outbox_failed, kind: 'parked' }, 'error'],
  [{ ...job_ended, outcome: 'done' }, 'debug'],
  [{ ...job_ended, outcome: 'again' }, 'warn'],
  [{ ...job_ended, outcome: 'parked' }, 'error'],
  [{ ...webhook_attempted, outcome: 'delivered' }, 'debug'],
  [{ ...webhook_attempted, outcome: 'again' }, 'warn'],
  [{ ...webhook_attempted, outcome: 'failed' }, 'error'],
  [{ signal: 'cut_off', transactions: 1, handlers: 0, operations: 0 }, 'warn'],
  [{ signal: 'webhook_disabled', account: 'acct_1', endpoint: 'we_1' }, 'warn'],
  [{ ...stuck, stuck: { in_progress: none, unknown: none, parked: none } }, null],
  [{ ...stuck, stuck: { in_progress: none, unknown: none, parked: some } }, 'error'],
]

it.each(LEVELS)('%j', (signal, level) => {
  const lines: unknown[] = []
  const at = (name: string) => (fields: object, message: string) => lines.push([name, fields, message])
  const logger: Logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  logTo(logger).signal?.(signal)
  if (level === null) return expect(lines).toEqual([])
  expect(lines).toEqual([[level, expect.objectContaining({ signal: signal.signal }), expect.any(String)]])
})

it('needs no debug of a logger, and calls its methods as its own', () => {
  class Plain implements Logger {
    readonly lines: string[] = []
    info(): void {
      this.lines.push('info')
    }
    warn(): void {
      this.lines.push('warn')
    }
    error(): void {
      this.lines.push('error')
    }
  }
  const logger = new Plain()
  for (const [signal] of LEVELS) logTo(logger).signal?.(signal)
  expect(new Set(logger.lines)).toEqual(new Set(['info', 'warn', 'error']))
})

it.each([undefined, null, {}, 'pino', { info() {}, warn() {} }])('refuses what is no logger: %j', (given) => {
  expect(() => logTo(given as never)).toThrow('logTo() takes a logger with info, warn and error')
})
