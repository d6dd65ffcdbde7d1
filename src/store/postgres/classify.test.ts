import { describe, expect, it } from 'vitest'
import { classify, isBroken, leavesDoubt, sqlState } from './classify.ts'

const fromServer = (code: string, severity = 'ERROR') => Object.assign(new Error('x'), { code, severity })
const fromSocket = (code: string) => Object.assign(new Error('read'), { code, syscall: 'read', errno: -104 })

describe('errors of the database', () => {
  it.each([
    ['23505', 'unique'],
    ['40001', 'collision'],
    ['40P01', 'collision'],
    ['55P03', 'lock_wait'],
    ['25P02', 'aborted'],
    ['25P03', 'idle'],
    ['25006', 'not_primary'],
    ['26000', 'not_prepared'],
    ['57P01', 'connection'],
    ['53300', 'connection'],
    ['08006', 'connection'],
    ['22012', 'other'],
    ['57014', 'too_slow'],
    ['53100', 'passing'],
    ['58030', 'passing'],
    ['XX001', 'passing'],
    ['42P01', 'other'],
    ['MY409', 'other'],
  ] as const)('%s is %s', (code, fault) => expect(classify(fromServer(code))).toBe(fault))

  it('take everything that PostgreSQL did not say for the loss of the connection', () => {
    const lost = [
      fromSocket('ECONNRESET'),
      new Error('Connection terminated unexpectedly'),
      new Error('write EPIPE'),
    ]
    for (const error of lost) {
      expect(classify(error)).toBe('connection')
      expect(sqlState(error)).toBe(null)
      expect(isBroken(error)).toBe(true)
    }
    expect(classify(new Error('Query read timeout'))).toBe('unanswered')
  })

  it('leave a doubt about COMMIT unless the server has spoken of it', () => {
    for (const error of [
      fromSocket('ECONNRESET'),
      fromServer('08006'),
      fromServer('08P01'),
      fromServer('40003'),
    ]) {
      expect(leavesDoubt(error)).toBe(true)
    }
    for (const code of ['40001', '23505', '23514']) expect(leavesDoubt(fromServer(code))).toBe(false)
  })

  it('do not depend on the language of the server', () => {
    const german = fromServer('40001', 'FEHLER')
    expect(classify(german)).toBe('collision')
    expect(leavesDoubt(german)).toBe(false)
  })
})
