import { describe, expect, it } from 'vitest'
import { chooseTime, readOptions } from './options.ts'

const now = new Date('2026-03-02T05:06:07.891Z')
const timeOf = (...args: string[]) => {
  const { from, to } = chooseTime(readOptions(args), now)
  return [from.toISOString(), to.toISOString()]
}

describe('the time to look at', () => {
  it.each([
    ['yesterday', [], '2026-03-01T00:00:00.000Z', '2026-03-02T00:00:00.000Z'],
    ['all since a day', ['--from', '2026-02-20'], '2026-02-20T00:00:00.000Z', '2026-03-02T00:00:00.000Z'],
    ['the day before one', ['--to', '2026-02-20'], '2026-02-19T00:00:00.000Z', '2026-02-20T00:00:00.000Z'],
    [
      'a part of a day',
      ['--from', '2026-03-02T01:00Z', '--to=2026-03-02T01:00:00.5Z'],
      '2026-03-02T01:00:00.000Z',
      '2026-03-02T01:00:00.500Z',
    ],
  ])('is %s', (_, args, from, to) => expect(timeOf(...args)).toEqual([from, to]))
})

it.each([
  [['--from', '2026-02-30'], '--from is a date'],
  [['--from', '2026-13-01'], '--from is a date'],
  [['--to', 'yesterday'], '--to is a date'],
  [['--to', '2026-03-01T12:00:00'], '--to is a date'],
  [['--to', '2026-03-01T25:00Z'], '--to is a date'],
  [['--from', '2026-03-02'], '--from is before --to'],
  [['--mode', 'both'], '--mode is test or live'],
  [['--since', '2026-03-02'], '--since'],
  [['2026-03-02'], '2026-03-02'],
])('%j is refused', (args, message) => expect(() => timeOf(...args)).toThrow(message))

it('takes what it is told', () => {
  expect(readOptions([])).toEqual({ from: null, to: null, mode: null, json: false })
  expect(readOptions(['--json', '--mode', 'live'])).toMatchObject({ mode: 'live', json: true })
})
