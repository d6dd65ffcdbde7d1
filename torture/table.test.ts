import { expect, it } from 'vitest'
import type { Summary } from './scenario.ts'
import { jsonOf, renderTable } from './table.ts'

const counts = { requests: 9, charges: 5, faults: 3, parked: 1 }
const violations = [{ rule: 'at most one charge', what: 'acct_1 key-1: 2 charges' }]
const summary = {
  name: 'workers',
  seed: 7,
  ...counts,
  quietS: null,
  violations,
  history: {},
} as unknown as Summary

it('tells programs of a scenario under the names of the contract, and nothing of its history', () => {
  expect(jsonOf(summary)).toEqual({ name: 'workers', seed: 7, ...counts, violations: 1, quiet_s: null })
})

it('tells people the counts, that there was no quiet, and what was violated', () => {
  const [, row, , complaint] = renderTable([summary]).split('\n')
  expect(row!.trim().split(/ +/)).toEqual(['workers', '7', '9', '5', '3', '1', '1', 'never'])
  expect(complaint).toBe('workers: at most one charge: acct_1 key-1: 2 charges')
})
