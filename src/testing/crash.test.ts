import { describe, expect, it, vi } from 'vitest'
import { crashAt, crashPointFromEnvironment, recordPoints } from './crash.ts'

describe('crash points', () => {
  it('does nothing when the environment names no site', () => {
    const hook = crashPointFromEnvironment({})
    hook('before_commit')
    crashPointFromEnvironment({ ONLYONCE_CRASH_AT: '' })('before_commit')
  })

  it('does nothing at other points, and before its occurrence', () => {
    const kill = vi.spyOn(process, 'kill').mockImplementation(() => {
      throw new Error('too early')
    })
    try {
      const hook = crashPointFromEnvironment({ ONLYONCE_CRASH_AT: 'before_commit#3' })
      for (const point of ['after_commit', 'before_commit', 'before_commit', 'claimed']) hook(point)
      expect(kill).not.toHaveBeenCalled()
    } finally {
      kill.mockRestore()
    }
  })

  it.each(['#1', 'point#', 'point#0', 'point#-1', 'point#1.5', 'point#two'])(
    'refuses the site %j',
    (text) => {
      expect(() => crashPointFromEnvironment({ ONLYONCE_CRASH_AT: text })).toThrow(/crash site/)
    },
  )

  it('refuses an occurrence that never comes', () => {
    expect(() => crashAt({ point: 'x', occurrence: 0 })).toThrow(/occurrence from 1 on/)
  })

  it('records points with their counts in the order of their first time', () => {
    const recorder = recordPoints()
    for (const point of ['b', 'a', 'b', 'b']) recorder.hook(point)
    expect(recorder.points()).toEqual([
      { point: 'b', count: 3 },
      { point: 'a', count: 1 },
    ])
  })

  it('records a bounded number of names', () => {
    const recorder = recordPoints()
    expect(() => {
      for (let i = 0; i < 10_000; i++) recorder.hook(`point_${i}`)
    }).toThrow(/one too many/)
  })
})
