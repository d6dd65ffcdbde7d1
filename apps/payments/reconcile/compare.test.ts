import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Movement } from '../gateway/index.ts'
import {
  compare,
  countsOf,
  differencesOf,
  mergeComparisons,
  type OwnMovement,
  renderJson,
  renderTable,
} from './index.ts'

const HOUR_MS = 3_600_000
const from = new Date('2026-03-01T00:00:00Z')
const to = new Date('2026-03-02T00:00:00Z')
const now = new Date('2026-03-02T06:00:00Z')
const time = { from, to, now }
const noon = '2026-03-01T12:00:00Z'

const own = (changed: Partial<OwnMovement> = {}): OwnMovement => ({
  account: 'acct_a:live',
  kind: 'payment',
  id: 'pay_1',
  gateway_id: 'pi_1',
  amount: 1_000,
  currency: 'EUR',
  moved: 1_000,
  at: noon,
  ...changed,
})
const their = (changed: Partial<Movement> = {}): Movement => ({
  account: 'acct_a:live',
  kind: 'payment',
  gateway_id: 'pi_1',
  reference: 'pay_1',
  amount: 1_000,
  currency: 'EUR',
  moved: 1_000,
  at: noon,
  ...changed,
})

/** The kinds of what differs, in words, and how many do not. */
function told(ours: OwnMovement[], theirs: Movement[], more: object = {}) {
  const comparison = compare(ours, theirs, { ...time, ...more })
  return [comparison.matched, ...differencesOf(comparison).map(({ difference }) => difference)]
}

describe('two books', () => {
  it.each<[string, OwnMovement[], Movement[], (number | string)[]]>([
    ['that say the same', [own()], [their()], [1]],
    ['of which one lacks a charge', [], [their()], [0, 'missing_here']],
    ['of which the other lacks it', [own()], [], [0, 'missing_there']],
    ['with other amounts', [own()], [their({ moved: 900 })], [0, 'amount_mismatch']],
    ['with other currencies', [own()], [their({ currency: 'USD' })], [0, 'amount_mismatch']],
    ['with a charge that we think failed', [own({ moved: 0 })], [their()], [0, 'amount_mismatch']],
    [
      'with a charge of which we think that nothing was made there',
      [own({ moved: 0, gateway_id: null })],
      [their()],
      [0, 'amount_mismatch'],
    ],
    ['with what was only held or declined', [], [their({ moved: 0 })], [0]],
    ['with what failed before it got there', [own({ moved: 0, gateway_id: null })], [], [0]],
    ['with what is held in both', [own({ moved: 0 })], [their({ moved: 0 })], [1]],
    [
      'with a charge that was made twice',
      [own()],
      [their(), their({ gateway_id: 'pi_2' })],
      [1, 'missing_here'],
    ],
    ['with the same page read twice', [own()], [their({ moved: 5 }), their()], [1]],
    [
      'with our reference on another charge than ours',
      [own()],
      [their({ gateway_id: 'pi_2' })],
      [0, 'missing_here', 'missing_there'],
    ],
    ['with one charge that two of ours have', [own(), own({ id: 'pay_2' })], [their()], [1, 'missing_there']],
    [
      'with one charge that two of ours have, of which the later one was told to the processor',
      [own({ id: 'pay_0', moved: 900 }), own()],
      [their()],
      [1, 'missing_there'],
    ],
    [
      'with the charge of a payment whose outcome is known as that of another',
      [own({ id: 'pay_0' }), own({ gateway_id: null, moved: 0 })],
      [their()],
      [0, 'missing_there', 'amount_mismatch'],
    ],
    [
      'with a refund that has the id of a payment',
      [own({ kind: 'refund' })],
      [their()],
      [0, 'missing_here', 'missing_there'],
    ],
    ['with a charge that is not ours at all', [], [their({ reference: null })], [0, 'missing_here']],
  ])('%s', (_, ours, theirs, expected) => expect(told(ours, theirs)).toEqual(expected))
})

describe('what is unknown', () => {
  const unknown = own({ moved: null, gateway_id: null })
  it('is left alone while it is young, on both sides', () => {
    const later = { now: new Date(Date.parse(noon) + HOUR_MS) }
    expect(told([unknown], [], later)).toEqual([0])
    expect(told([unknown], [their()], later)).toEqual([0])
  })
  it('is told when it is old, with what the other side says', () => {
    const later = { now: new Date(Date.parse(noon) + 24 * HOUR_MS) }
    expect(told([unknown], [], later)).toEqual([0, 'aged_unknown'])
    expect(compare([unknown], [their()], { ...time, ...later }).aged_unknown).toEqual([
      { difference: 'aged_unknown', ours: unknown, theirs: their() },
    ])
    expect(told([unknown], [], { now, unknownAfterMs: HOUR_MS })).toEqual([0, 'aged_unknown'])
  })
  it('ages from when on it is unknown, which may be long after it was made', () => {
    const capturing = { ...own({ moved: null }), unknown_since: to.toISOString() }
    const dayLater = { now: new Date(to.getTime() + 24 * HOUR_MS) }
    expect(told([capturing], [their()], { now })).toEqual([0])
    expect(told([capturing], [their()], dayLater)).toEqual([0, 'aged_unknown'])
  })
  it('is matched with the charge that moved money, not with the declines before it', () => {
    const theirs = [
      their({ gateway_id: 'pi_1', moved: 0 }),
      their({ gateway_id: 'pi_2' }),
      their({ gateway_id: 'pi_3', moved: 0 }),
    ]
    const [found] = compare([unknown], theirs, { ...time, unknownAfterMs: 0 }).aged_unknown
    expect(found?.theirs?.gateway_id).toBe('pi_2')
  })
  it('does not hide a second charge', () => {
    const theirs = [their(), their({ gateway_id: 'pi_2' })]
    expect(told([unknown], theirs, { unknownAfterMs: 0 })).toEqual([0, 'missing_here', 'aged_unknown'])
  })
})

it('what is missing is told for the time in question, and matched beyond it', () => {
  const before = { at: '2026-02-28T23:59:59.999Z' }
  const behind = { at: to.toISOString() }
  expect(told([], [their(before)])).toEqual([0])
  expect(told([], [their({ at: from.toISOString() })])).toEqual([0, 'missing_here'])
  expect(told([own(behind)], [])).toEqual([0])
  expect(told([own(before)], [their()])).toEqual([1])
})

it('two days next to each other tell everything once', () => {
  const night = (number: number) => ({ at: new Date(to.getTime() + number * 60_000).toISOString() })
  const pairs = [-2, -1, 0, 1].flatMap((there) => [-2, -1, 0, 1].map((here) => ({ there, here })))
  const ours = pairs.map(({ here }, i) =>
    own({ id: `pay_${i}`, gateway_id: `pi_${i}`, moved: i % 3 === 0 ? null : 1_000, ...night(here) }),
  )
  const theirs = pairs.map(({ there }, i) =>
    their({ gateway_id: `pi_${i}`, moved: i % 3 === 1 ? 900 : 1_000, ...night(there) }),
  )
  const next = new Date(to.getTime() + 24 * HOUR_MS)
  const days = [
    { from, to },
    { from: to, to: next },
  ].map((day) => compare(ours, theirs, { ...day, now: next, unknownAfterMs: 0 }))
  const both = mergeComparisons(days)
  expect(both.matched + differencesOf(both).length).toBe(pairs.length)
  expect(days.every(({ matched, aged_unknown: agedUnknown }) => matched > 0 && agedUnknown.length > 0)).toBe(
    true,
  )
})

it('every movement is counted in one place, whatever order it comes in', () => {
  const id = fc.integer({ min: 0, max: 12 })
  const ours = fc.uniqueArray(
    fc.record({ n: id, known: fc.boolean(), moved: fc.constantFrom(null, 0, 5, 7) }),
    { selector: ({ n }) => n },
  )
  const theirs = fc.uniqueArray(fc.record({ n: id, reference: id, moved: fc.constantFrom(0, 5, 7) }), {
    selector: ({ n }) => n,
  })
  fc.assert(
    fc.property(ours, theirs, (some, others) => {
      const our = some.map(({ n, known, moved }) =>
        own({ id: `pay_${n}`, gateway_id: known ? `pi_${n}` : null, moved }),
      )
      const other = others.map(({ n, reference, moved }) =>
        their({ gateway_id: `pi_${n}`, reference: `pay_${reference}`, moved }),
      )
      const always = { ...time, unknownAfterMs: 0 }
      const comparison = compare(our, other, always)
      expect(countsOf(compare(our.toReversed(), other.toReversed(), always))).toEqual(countsOf(comparison))
      // Of money that moved, nothing is forgotten and nothing told twice.
      const differences = differencesOf(comparison)
      const seen = differences.flatMap(({ ours: mine }) => mine ?? [])
      expect(new Set(seen).size).toBe(seen.length)
      expect(comparison.aged_unknown.length).toBe(our.filter(({ moved }) => moved === null).length)
      const movedThere = other.filter(({ moved }) => moved > 0).length
      const {
        missing_here: missingHere,
        amount_mismatch: amountMismatch,
        aged_unknown: agedUnknown,
        matched,
      } = countsOf(comparison)
      expect(movedThere).toBeLessThanOrEqual(missingHere + amountMismatch + agedUnknown + matched)
    }),
  )
})

describe('what was found', () => {
  const comparison = compare(
    [own({ id: 'pay_2', gateway_id: 'pi_2' }), own({ id: 'pay_3', gateway_id: 'pi_3', currency: 'JPY' })],
    [their(), their({ gateway_id: 'pi_3', reference: 'pay_3', currency: 'JPY', moved: 900 })],
    time,
  )
  it('as a table', () => {
    expect(renderTable(comparison)).toBe(
      [
        'matched          0',
        'missing_here     1',
        'missing_there    1',
        'amount_mismatch  1',
        'aged_unknown     0',
        '',
        'difference       kind     ours   theirs  moved here  moved there',
        'missing_here     payment  pay_1  pi_1    -           10.00 EUR',
        'missing_there    payment  pay_2  pi_2    10.00 EUR   -',
        'amount_mismatch  payment  pay_3  pi_3    1,000 JPY   900 JPY',
      ].join('\n'),
    )
  })
  it('as JSON', () => {
    const json = JSON.parse(renderJson(comparison))
    expect(json.counts).toEqual(countsOf(comparison))
    expect(json.differences).toEqual(differencesOf(comparison))
  })
  it('is nothing but numbers where all is well', () => {
    expect(renderTable(compare([own()], [their()], time)).split('\n')).toHaveLength(5)
  })
})
