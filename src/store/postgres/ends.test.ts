import { describe, expect, test } from 'vitest'
import { endOfFailedWork } from './ends.ts'

describe('a transaction that the server has ended, and the connection with it', () => {
  test.each([
    ['25P03', 'transaction_idle'],
    ['25P04', 'deadline_exceeded'],
  ])('for %s is told as %s', (code, told) => {
    const lost = Object.assign(new Error('terminating connection'), { code, severity: 'FATAL' })
    const facts = { failure: null, endedInside: false, lost, translate: (error: unknown) => error }
    expect(endOfFailedWork(lost, facts)).toMatchObject({ end: 'failed', error: { code: told, cause: lost } })
  })
})
