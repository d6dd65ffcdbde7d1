import { describe, expect, it } from 'vitest'
import type { Attempt, History, Movement } from './history.ts'
import { judge, RULES } from './judge.ts'

/**
 * A judge that never finds anything proves nothing. So each invariant has a history that was tampered with, which the judge
 * has to catch by that invariant; and the history that was not is accepted.
 */
const ACCOUNT = 'acct_a:test'
const OTHER = 'acct_b:test'
const PAYMENT = `pay_${'1'.repeat(32)}`
const FOREIGN = `pay_${'2'.repeat(32)}`

const answer = (over: Partial<Attempt> = {}): Attempt => ({
  account: ACCOUNT,
  action: 'create',
  key: 'key-1',
  body: 'digest',
  payment: null,
  amount: 500,
  sentAt: 1_000,
  endedAt: 1_100,
  end: 'answered',
  status: 201,
  replayed: false,
  contentType: 'application/json',
  text: JSON.stringify({ id: PAYMENT, amount: 500 }),
  server: 'api-0',
  ...over,
})

const problem = (status: number, members: Record<string, unknown>): Partial<Attempt> => ({
  status,
  contentType: 'application/problem+json',
  text: JSON.stringify({ status, ...members }),
})

const charge = (over: Partial<Movement> = {}): Movement => ({
  kind: 'capture',
  capture_method: 'automatic',
  at: 1_050,
  payment_intent: 'pi_1',
  amount: 500,
  currency: 'eur',
  metadata: { account: ACCOUNT, payment: PAYMENT },
  ...over,
})

const entry = (ledgerAccount: string, amount: number) => ({
  account: ACCOUNT,
  transaction: 'txn_1',
  ledger_account: ledgerAccount,
  currency: 'EUR',
  amount,
  state: 'posted',
})

const payment = {
  account: ACCOUNT,
  id: PAYMENT,
  status: 'succeeded',
  amount: 500,
  currency: 'EUR',
  idempotency_key: 'key-1',
  gateway_id: 'pi_1',
  captured: 500,
  refunded: 0,
}

const record = {
  account: ACCOUNT,
  operation: 'payments.create',
  key: 'key-1',
  state: 'completed',
  reply_status: 201,
  error_code: null,
}

const event = {
  account: ACCOUNT,
  id: '0-1',
  aggregate: `payment:${PAYMENT}`,
  sequence: 1,
  type: 'payment.succeeded',
}
const delivery = {
  path: '/hooks/0',
  id: 'evt_0-1',
  body: JSON.stringify({ id: 'evt_0-1', data: { id: PAYMENT } }),
}
const life = { name: 'api-0', end: 'alive', output: 'Ready', samples: [] } as const

const SOUND: History = {
  scenario: 'sound',
  seed: 1,
  attempts: [answer()],
  journal: [charge()],
  database: {
    records: [record],
    payments: [payment],
    captures: [],
    refunds: [],
    transfers: [],
    entries: [entry('gateway', 500), entry('balance', -500)],
    events: [event],
    pendingMessages: [],
  },
  endpoints: [{ account: ACCOUNT, path: '/hooks/0' }],
  deliveries: [delivery],
  processes: [life],
  canarySeenIn: [],
  quietS: 1,
  quietLimitS: 60,
  documented: new Map([
    ['not_executed', new Set([503])],
    ['store_unavailable', new Set([503])],
    ['in_progress', new Set([409])],
  ]),
  parkReasons: new Set(['call_in_doubt']),
}

const database = (over: Partial<History['database']>): Pick<History, 'database'> => ({
  database: { ...SOUND.database, ...over },
})

const growing = Array.from({ length: 80 }, (_, n) => ({ rssMb: 100 + n * 10, descriptors: 30 }))
const hoarding = Array.from({ length: 80 }, (_, n) => ({ rssMb: 100, descriptors: 30 + n * 20 }))

/** What was done to the history, by the invariant that has to notice. */
const TAMPERED: readonly (readonly [rule: string, what: string, history: Partial<History>])[] = [
  ['charged once', 'a second charge', { journal: [charge(), charge({ payment_intent: 'pi_2' })] }],
  [
    'charged once',
    'a charge for nothing',
    { journal: [charge(), charge({ payment_intent: 'pi_2', metadata: {} })] },
  ],
  [
    'charged once',
    'a second payment under the key',
    database({ payments: [payment, { ...payment, id: FOREIGN, gateway_id: 'pi_2' }] }),
  ],
  [
    'charged once',
    'a second refund under the key',
    database({
      refunds: ['r1', 'r2'].map((id) => ({
        account: ACCOUNT,
        payment: PAYMENT,
        id,
        amount: 1,
        status: 'succeeded',
        idempotency_key: 'refund-1',
      })),
    }),
  ],
  [
    'charged once',
    'a second capture under the key',
    database({
      captures: ['c1', 'c2'].map((id) => ({
        account: ACCOUNT,
        payment: PAYMENT,
        id,
        amount: 1,
        status: 'succeeded',
        idempotency_key: 'capture-1',
      })),
    }),
  ],
  [
    'replies agree',
    'two different successes',
    { attempts: [answer(), answer({ text: JSON.stringify({ id: PAYMENT, amount: 500, more: 1 }) })] },
  ],
  ['replies agree', 'a success without a payment', database({ payments: [] })],
  ['replies agree', 'a success without a charge', { journal: [charge({ kind: 'decline' })].slice(1) }],
  ['replies agree', "another account's payment", database({ payments: [{ ...payment, account: OTHER }] })],
  ['replies agree', 'another amount', { attempts: [answer({ amount: 501 })] }],
  ['replies agree', "another key's payment", { attempts: [answer({ key: 'key-2' })] }],
  [
    'not executed is true',
    'the words, after the charge',
    {
      attempts: [
        answer({
          sentAt: 2_000,
          endedAt: 2_100,
          ...problem(503, {
            code: 'store_unavailable',
            detail: 'The database cannot be reached; nothing was executed.',
          }),
        }),
      ],
    },
  ],
  [
    'not executed is true',
    'the member for machines, while its own request charged',
    { attempts: [answer(problem(503, { code: 'not_executed', detail: '', executed: 'no' }))] },
  ],
  [
    'not executed is true',
    'a request that says it started nothing, while no other was there',
    {
      attempts: [
        answer(problem(503, { code: 'store_unavailable', detail: '', executed: 'not_by_this_request' })),
      ],
    },
  ],
  [
    'sums hold',
    'more captured than authorized',
    { journal: [charge(), charge({ capture_method: 'manual' })] },
  ],
  [
    'sums hold',
    'more refunded than captured',
    { journal: [charge(), charge({ kind: 'refund', amount: 501 })] },
  ],
  [
    'sums hold',
    'a capture that the processor does not have',
    database({ payments: [{ ...payment, captured: 600 }] }),
  ],
  [
    'sums hold',
    'a refund that the processor does not have',
    database({ payments: [{ ...payment, refunded: 1 }] }),
  ],
  ['ledger equals journal', 'a transaction that is not zero', database({ entries: [entry('gateway', 500)] })],
  ['ledger equals journal', 'a capture that was not booked', database({ entries: [] })],
  [
    'ledger equals journal',
    'a refund that was not booked',
    { journal: [charge(), charge({ kind: 'refund', amount: 100 })] },
  ],
  ['everything ends', 'a record in progress', database({ records: [{ ...record, state: 'in_progress' }] })],
  ['everything ends', 'a record in doubt', database({ records: [{ ...record, state: 'unknown' }] })],
  [
    'everything ends',
    'parked without a documented reason',
    database({ records: [{ ...record, state: 'parked', error_code: '53100' }] }),
  ],
  ['everything ends', 'no quiet in time', { quietS: null }],
  [
    'everything ends',
    'a payment that is forgotten',
    database({ payments: [{ ...payment, status: 'processing' }] }),
  ],
  [
    'answers are documented',
    'a code that is not documented',
    { attempts: [answer(problem(503, { code: 'surprise', detail: '' }))] },
  ],
  [
    'answers are documented',
    'another status than documented',
    { attempts: [answer(problem(500, { code: 'in_progress', detail: '' }))] },
  ],
  [
    'answers are documented',
    'text of a driver',
    {
      attempts: [
        answer(problem(503, { code: 'not_executed', detail: 'connect ECONNREFUSED 127.0.0.1:5432' })),
      ],
    },
  ],
  [
    'answers are documented',
    'a page',
    { attempts: [answer({ status: 502, contentType: 'text/html', text: '<h1>' })] },
  ],
  [
    'answers are documented',
    'a success that is no JSON',
    { attempts: [answer({ contentType: 'text/plain' })] },
  ],
  ['processes live', 'a process that ended', { processes: [{ ...life, end: 'by_itself' }] }],
  [
    'processes live',
    'an unhandled rejection',
    { processes: [{ ...life, output: 'UnhandledPromiseRejection: release is not a function' }] },
  ],
  ['processes live', 'memory that grows', { processes: [{ ...life, samples: growing }] }],
  ['processes live', 'descriptors that stay open', { processes: [{ ...life, samples: hoarding }] }],
  ['events arrive', 'an event that never came', { deliveries: [] }],
  [
    'events arrive',
    'one id with two bodies',
    { deliveries: [delivery, { ...delivery, body: '{"id":"evt_0-1"}' }] },
  ],
  ['events arrive', 'a gap in the numbers', database({ events: [{ ...event, sequence: 2 }] })],
  [
    'tenants stay apart',
    "another account's payment in an answer",
    {
      attempts: [answer({ account: OTHER, key: 'key-9', status: 200, action: 'transfer' })],
    },
  ],
  [
    'tenants stay apart',
    "another account's payment in a webhook",
    { endpoints: [{ account: OTHER, path: '/hooks/0' }] },
  ],
  ['no card number is kept', 'a card number in a table', { canarySeenIn: ['table payments.payments'] }],
]

describe('the judge', () => {
  it('accepts a history in which everything held', () => {
    expect(judge(SOUND)).toEqual([])
  })

  it.each(TAMPERED)('%s: finds %s', (rule, _, tampering) => {
    expect(judge({ ...SOUND, ...tampering }).map((violation) => violation.rule)).toContain(rule)
  })

  it('has a tampered history for every invariant', () => {
    expect(new Set(TAMPERED.map(([rule]) => rule))).toEqual(new Set(Object.keys(RULES)))
  })

  it('does not take a "not executed" for false that another request overtook', () => {
    const overtaken = answer({
      sentAt: 1_000,
      endedAt: 1_060,
      ...problem(503, { code: 'not_executed', detail: '', executed: 'no' }),
    })
    expect(judge({ ...SOUND, attempts: [overtaken, answer({ sentAt: 1_020 })] })).toEqual([])
  })

  it('lets a request say that it started nothing when an earlier one of its key did', () => {
    const refused = answer({
      sentAt: 2_000,
      endedAt: 2_100,
      ...problem(503, { code: 'store_unavailable', detail: '', executed: 'not_by_this_request' }),
    })
    expect(judge({ ...SOUND, attempts: [answer(), refused] })).toEqual([])
  })

  it('leaves what is parked out of the comparison of ledger and journal', () => {
    const parked = database({
      records: [{ ...record, state: 'parked', error_code: 'call_in_doubt' }],
      payments: [{ ...payment, status: 'unknown', captured: 0, gateway_id: null }],
      entries: [],
    })
    const asked = answer(problem(409, { code: 'in_progress', detail: '' }))
    expect(judge({ ...SOUND, ...parked, attempts: [asked] })).toEqual([])
  })
})
