import { describe, expect, it } from 'vitest'
import { BackendReader } from './backend-reader.ts'
import { backend } from './fakes/messages.ts'

describe('BackendReader', () => {
  it('counts ReadyForQuery over chunk boundaries, and no Z inside another message', () => {
    const answer = Buffer.concat([backend.commandComplete('ZZZZZ'), backend.readyForQuery()])
    const reader = new BackendReader()
    for (const byte of Buffer.concat([answer, answer])) reader.push(Buffer.from([byte]), 0)
    expect(reader.answers).toBe(2)
  })

  it('skips the byte that refuses encryption', () => {
    const reader = new BackendReader()
    reader.push(Buffer.concat([Buffer.from('N'), backend.readyForQuery()]), 1)
    expect(reader.answers).toBe(1)
  })

  it('gives up on an encrypted stream', () => {
    const reader = new BackendReader()
    reader.push(Buffer.concat([Buffer.from('S'), backend.readyForQuery()]), 1)
    expect(reader.answers).toBe(0)
  })
})
