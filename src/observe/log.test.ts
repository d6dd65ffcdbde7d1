import { expect, it } from 'vitest'
import { type Logger, logTo } from './log.ts'
import type { CallEnded, Signal } from './signals.ts'

const id = { account: 'acct_1', operation: 'transfers.create', key: 'a-key-of-some-length' }
const ofCall = { protection: 'handler', id } as const
const failure = { code: 'c', message: 'm' }
const none = { count: 0, oldestAgeMs: 0 }
const some = { count: 1, oldestAgeMs: 5_000_000 }
const ended: CallEnded = {
  signal: 'call_ended',
  ...ofCall,
  outcome: 'executed',
  failure: null,
  code: null,
  fence: 1,
  joined: false,
  durationMs: 1,
}
const error = { signal: 'store_error', step: 'look', message: '', id } as const
const stuck = { signal: 'stuck', olderThanMs: 1 } as const

const outboxFailed = { signal: 'outbox_failed', destination: 'd', failure, event: null } as const
const job = { job: 'j', account: 'a', jobId: 'job_1', attempts: 1 }
const webhook = {
  account: 'acct_1',
  endpoint: 'we_1',
  message: 'evt_1',
  type: 't',
  attempts: 1,
  status: null,
}
const webhookAttempted = { signal: 'webhook_attempted', ...webhook, failure: null, durationMs: 1 } as const
const jobEnded = { signal: 'job_ended', ...job, failure: null, durationMs: 1 } as const

const LEVELS: readonly [Signal, string | null][] = [
  [{ signal: 'call_started', ...ofCall }, null],
  [ended, 'debug'],
  [{ ...ended, outcome: 'failed', code: 'thrown' }, 'debug'],
  [{ ...ended, outcome: 'failed', code: 'outcome_unknown' }, 'warn'],
  [{ signal: 'reserved', ...ofCall, kind: 'created', fence: 1 }, null],
  [{ signal: 'reserved', ...ofCall, kind: 'replay', fence: 1 }, null],
  [{ signal: 'reserved', ...ofCall, kind: 'unknown', fence: 1 }, 'warn'],
  [{ signal: 'reserved', ...ofCall, kind: 'parked', fence: 1 }, 'warn'],
  [{ signal: 'key_misuse', security: true, ...ofCall }, 'warn'],
  [{ signal: 'zombie_key', ...ofCall }, 'warn'],
  [{ signal: 'tx_unused', ...ofCall, first: true }, 'warn'],
  [{ signal: 'tx_error_ignored', ...ofCall, first: true, failure }, 'error'],
  [{ signal: 'lease_lost', ...ofCall, fence: 1 }, 'warn'],
  [{ signal: 'mistake', route: 'r', code: 'c', message: 'm', first: true }, 'error'],
  [{ signal: 'mistake', route: 'r', code: 'c', message: 'm', first: false }, 'debug'],
  [{ signal: 'handler_failed', ...ofCall, failure, status: 500, fence: 1 }, 'error'],
  [{ signal: 'operation_failed', ...ofCall, step: 's', failure }, 'warn'],
  [{ signal: 'operation_failed', ...ofCall, step: 's', failure: { ...failure, code: '42501' } }, 'error'],
  [{ signal: 'operation_failed', ...ofCall, step: 's', failure: { ...failure, code: '40001' } }, 'warn'],
  [{ signal: 'herd', ...ofCall, size: 2 }, 'debug'],
  [{ signal: 'not_admitted', ...ofCall, code: 'rate_limited' }, 'debug'],
  [{ ...error, code: 'store_unavailable', reason: 'reset' }, 'debug'],
  [{ ...error, code: '42P01', reason: null }, 'error'],
  [{ ...error, code: '40001', reason: null }, 'debug'],
  [{ signal: 'store_away', code: 'c', reason: 'reset', message: 'm', failures: 1, awayMs: 0 }, 'error'],
  [{ signal: 'store_back', failures: 1, awayMs: 1 }, 'warn'],
  [
    { signal: 'worker_failed', worker: 'w', code: 'store_unavailable', reason: 'reset', message: '' },
    'error',
  ],
  [{ signal: 'reconcile_scheduled', id, failure }, 'warn'],
  [{ signal: 'reconcile_failed', id, failure }, 'error'],
  [{ signal: 'reconcile_resolved', id, state: 'completed' }, 'info'],
  [{ signal: 'parked', id, failure }, 'error'],
  [{ signal: 'unattended', id }, 'error'],
  [{ signal: 'void_call_happened', id, callKey: 'the-key-of-a-call' }, 'error'],
  [{ signal: 'ttl_pruned', count: 0 }, null],
  [{ signal: 'ttl_pruned', count: 1 }, 'info'],
  [{ signal: 'outbox_lag', destination: 'd', count: 1, oldestAgeMs: 1, parked: 0 }, null],
  [{ signal: 'outbox_delivered', destination: 'd', count: 1 }, 'debug'],
  [{ ...outboxFailed, kind: 'away' }, 'warn'],
  [{ ...outboxFailed, kind: 'held' }, 'warn'],
  [{ ...outboxFailed, kind: 'gone' }, 'error'],
  [{ ...outboxFailed, kind: 'parked' }, 'error'],
  [{ ...jobEnded, outcome: 'done' }, 'debug'],
  [{ ...jobEnded, outcome: 'again' }, 'warn'],
  [{ ...jobEnded, outcome: 'parked' }, 'error'],
  [{ ...webhookAttempted, outcome: 'delivered' }, 'debug'],
  [{ ...webhookAttempted, outcome: 'again' }, 'warn'],
  [{ ...webhookAttempted, outcome: 'failed' }, 'error'],
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
