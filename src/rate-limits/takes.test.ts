import { expect, it } from 'vitest'
import { LIMITS } from '../core/limits.ts'
import { Takes } from './takes.ts'
import type { Taken } from './windows.ts'

const TAKEN: Taken = { granted: 1, leftBefore: 1, resetMs: 1_000, window: '1' }

it('statements that a silent store has not answered are not heaped up, also when nobody waits for them', async () => {
  const answers: ((taken: Taken) => void)[] = []
  const take = () => new Promise<Taken>((resolve) => void answers.push(resolve))
  const takes = new Takes({ take }, 20)
  const late = Array.from({ length: LIMITS.waitingMax }, (_, n) => takes.take(`key_${n}`, 1))
  for (const { status } of await Promise.allSettled(late)) expect(status).toBe('rejected')
  await expect(takes.take('another', 1)).rejects.toMatchObject({ code: 'overloaded' })
  expect(answers).toHaveLength(LIMITS.waitingMax)
  for (const answer of answers.splice(0)) answer(TAKEN)
  await Promise.resolve()
  const next = takes.take('another', 1)
  await Promise.resolve()
  answers[0]!(TAKEN)
  expect(await next).toMatchObject({ granted: true })
})

it('a statement that fails in between harms only those who went with it', async () => {
  const sent: number[] = []
  const take = async (_: string, __: number, count: number): Promise<Taken> => {
    sent.push(count)
    if (sent.length === 2) throw new Error('away')
    return { ...TAKEN, granted: count, leftBefore: count }
  }
  const takes = new Takes({ take }, 10_000)
  const asked = Array.from({ length: 2 * LIMITS.limitBatchMax + 7 }, () => takes.take('a', 1))
  const ends = await Promise.allSettled(asked)
  expect(sent).toEqual([LIMITS.limitBatchMax, LIMITS.limitBatchMax, 7])
  expect(ends.map(({ status }) => status === 'fulfilled')).toEqual([
    ...Array(LIMITS.limitBatchMax).fill(true),
    ...Array(LIMITS.limitBatchMax).fill(false),
    ...Array(7).fill(true),
  ])
})

it('one subject does not take all places of those who wait', async () => {
  const takes = new Takes({ take: () => new Promise<Taken>(() => {}) }, 20)
  const flood = Array.from({ length: LIMITS.waitingMax }, () => takes.take('a', 1))
  const ends = await Promise.allSettled([...flood, takes.take('b', 1)])
  const codes = ends.map((end) => (end.status === 'rejected' ? end.reason.code : 'taken'))
  expect(codes.filter((code) => code === 'overloaded')).toHaveLength(LIMITS.waitingMax / 2)
  expect(codes.at(-1)).toBe('store_unavailable')
})
