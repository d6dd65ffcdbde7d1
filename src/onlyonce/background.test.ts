import { expect, test } from 'vitest'
import { waitUntil } from '../../test/setup/wait.ts'
import { Observers } from '../observe/index.ts'
import { Background } from './background.ts'

test('a duty that its role may not do is tried once, and the others go on', async () => {
  const told: string[] = []
  const observers = new Observers({ signal: ({ signal }) => void told.push(signal) })
  const ran = { reaper: 0, recoverer: 0 }
  const duty = (name: 'reaper' | 'recoverer', error: Error | null) => ({
    name,
    everyMs: 1,
    run: async () => {
      ran[name] += 1
      if (error !== null) throw error
      return { more: false }
    },
  })
  const denied = Object.assign(new Error('permission denied'), { code: '42501', severity: 'ERROR' })
  const background = new Background([duty('reaper', denied), duty('recoverer', null)], observers)
  background.start()
  await waitUntil('the other had its turn often', () => ran.recoverer >= 50)
  await background.stop()
  expect(ran.reaper).toBe(1)
  expect(told).toEqual(['worker_failed'])
})
