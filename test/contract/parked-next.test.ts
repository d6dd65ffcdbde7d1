import { expect, it } from 'vitest'
import { describe as tell } from '../../src/onlyonce/explain-text.ts'

const facts = {
  replyStatus: null,
  failure: null,
  settledBy: null,
  givenUp: false,
  erased: false,
  recoveryPoint: null,
}
const inDoubt = { step: 'charged', key: 'k', generation: 0, since: 0 }

it.each([
  ['handler', null],
  ['operation', null],
  ['operation', inDoubt],
] as const)('next of a parked %s names a decision for either outcome', (kind, doubt) => {
  const failure = { code: 'c', message: 'm' }
  const record = { state: 'parked', kind, decided: false, failure, fence: 1 } as never
  const { next } = tell(record, { ...facts, inDoubt: doubt }, 1)
  expect(next).toMatch(/allowRetry: true/)
  expect(next).toMatch(/resolve with the reply|addEvidence/)
})
