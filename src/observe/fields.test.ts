import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { logFields, redactKey, showText } from './fields.ts'
import type { Signal } from './signals.ts'

const KEY = '9f1c2d7e-3b58-4d34-9d59-0e1a3a1f2b77'
const id = { account: 'acct_1', operation: 'transfers.create', key: KEY }
const digest = createHash('sha256').update(KEY).digest('hex').slice(0, 12)

describe('a redacted key', () => {
  it('is its first four characters and a digest', () => {
    expect(redactKey(KEY)).toBe(`9f1c…${digest}`)
  })
  it('tells keys apart that begin alike', () => {
    expect(redactKey(`${KEY}a`)).not.toBe(redactKey(`${KEY}b`))
  })
})

describe('a text of somebody else', () => {
  it('loses its card numbers before it is cut', () => {
    const text = `${'x'.repeat(290)} 4242 4242 4242 4242`
    expect(showText(text)).toBe(`${'x'.repeat(290)} [card num`)
  })
})

const SIGNALS: readonly [Signal, object][] = [
  [{ signal: 'call_started', protection: 'within', id }, { protection: 'within' }],
  [
    {
      signal: 'call_ended',
      protection: 'handler',
      id,
      outcome: 'failed',
      failure: { code: 'E4242424242424242', message: 'card 4242-4242-4242-4242' },
      code: 'thrown',
      fence: 2,
      joined: false,
      durationMs: 1.7,
    },
    {
      outcome: 'failed',
      code: 'thrown',
      fence: 2,
      joined: false,
      duration_ms: 2,
      error_code: 'E[card number]',
      error_message: 'card [card number]',
    },
  ],
  [
    { signal: 'reserved', protection: 'handler', id, kind: 'replay', fence: 1 },
    { kind: 'replay', fence: 1 },
  ],
  [{ signal: 'key_misuse', security: true, protection: 'transaction', id }, { security: true }],
  [{ signal: 'zombie_key', protection: 'handler', id }, {}],
  [{ signal: 'tx_unused', protection: 'transaction', id, first: true }, { first: true }],
  [
    {
      signal: 'tx_error_ignored',
      protection: 'transaction',
      id,
      first: true,
      failure: { code: 'c', message: 'm' },
    },
    { first: true, error_code: 'c', error_message: 'm' },
  ],
  [{ signal: 'lease_lost', protection: 'handler', id, fence: 3 }, { fence: 3 }],
  [
    {
      signal: 'handler_failed',
      protection: 'handler',
      id,
      failure: { code: 'c', message: 'm' },
      status: 500,
      fence: 1,
    },
    { status: 500, fence: 1, error_code: 'c', error_message: 'm' },
  ],
  [
    {
      signal: 'operation_failed',
      protection: 'operation',
      id,
      step: 'paid by 4242424242424242',
      failure: { code: '42501', message: 'm' },
    },
    { step: 'paid by [card number]', error_code: '42501', error_message: 'm' },
  ],
  [{ signal: 'herd', protection: 'handler', id, size: 7 }, { size: 7 }],
  [{ signal: 'not_admitted', protection: 'handler', id, code: 'overloaded' }, { code: 'overloaded' }],
  [
    {
      signal: 'store_error',
      step: 'claim',
      code: 'store_unavailable',
      reason: 'reset',
      message: 'gone',
      id,
    },
    { step: 'claim', reason: 'reset', error_code: 'store_unavailable', error_message: 'gone' },
  ],
  [
    { signal: 'reconcile_scheduled', id, failure: { code: 'owner_vanished', message: 'm' } },
    { error_code: 'owner_vanished', error_message: 'm' },
  ],
  [
    { signal: 'reconcile_failed', id, failure: { code: 'c', message: 'm' } },
    { error_code: 'c', error_message: 'm' },
  ],
  [{ signal: 'reconcile_resolved', id, state: 'completed' }, { state: 'completed' }],
]

describe('the fields of a signal', () => {
  it.each(SIGNALS)('are flat and name the record by a redacted key: $signal', (signal, told) => {
    const fields = logFields(signal)
    expect(fields).toMatchObject({ ...told, account: 'acct_1', operation: 'transfers.create' })
    expect(fields.key).toBe(redactKey(KEY))
    expect(fields.signal).toBe(signal.signal)
    expect(Object.values(fields).filter((value) => typeof value === 'object' && value !== null)).toEqual([])
    expect(JSON.stringify(fields)).not.toContain(KEY)
  })

  it('of what leaves the database name no payload, and mask what others wrote', () => {
    const failure = { code: 'E', message: 'card 4242424242424242' }
    const event = { account: 'acct_1', id: 'evt_1', type: 't 4242424242424242' }
    const failed = { signal: 'outbox_failed', destination: 'd', kind: 'parked', failure, event } as const
    expect(logFields(failed)).toEqual({
      signal: 'outbox_failed',
      destination: 'd',
      kind: 'parked',
      account: 'acct_1',
      event: 'evt_1',
      type: 't [card number]',
      error_code: 'E',
      error_message: 'card [card number]',
    })
    expect(logFields({ ...failed, kind: 'away', event: null })).not.toHaveProperty('account')
    const ended = { signal: 'job_ended', job: 'j', account: 'acct_1' } as const
    expect(
      logFields({ ...ended, jobId: 'job_1', outcome: 'again', attempts: 2, failure, durationMs: 1.2 }),
    ).toEqual({
      ...ended,
      job_id: 'job_1',
      outcome: 'again',
      attempts: 2,
      duration_ms: 1,
      error_code: 'E',
      error_message: 'card [card number]',
    })
    const lag = { signal: 'outbox_lag', destination: 'd', count: 1, oldestAgeMs: 2, parked: 3 } as const
    const { oldestAgeMs, ...counts } = lag
    expect(logFields(lag)).toEqual({ ...counts, oldest_age_ms: oldestAgeMs })
    const delivered = { signal: 'outbox_delivered', destination: 'd', count: 1 } as const
    expect(logFields(delivered)).toEqual(delivered)
  })

  it('leave the record out where there is none', () => {
    const error = {
      signal: 'store_error',
      step: 'start',
      code: 'other',
      message: '',
      reason: null,
      id: null,
    } as const
    expect(logFields(error)).not.toHaveProperty('account')
    expect(logFields({ signal: 'ttl_pruned', count: 3 })).toEqual({ signal: 'ttl_pruned', count: 3 })
    const failed = { signal: 'worker_failed', worker: 'reaper', reason: null } as const
    expect(logFields({ ...failed, code: 'closed', message: 'm' })).toEqual({
      ...failed,
      error_code: 'closed',
      error_message: 'm',
    })
  })

  it('tell the counts of stuck records one by one', () => {
    const none = { count: 0, oldestAgeMs: 0 }
    const stuck = { in_progress: { count: 2, oldestAgeMs: 9 }, unknown: none, parked: none }
    expect(logFields({ signal: 'stuck', olderThanMs: 5, stuck })).toMatchObject({
      older_than_ms: 5,
      in_progress: 2,
      in_progress_oldest_age_ms: 9,
      unknown: 0,
    })
  })
})
