import { describe, expect, it } from 'vitest'
import { formatTraceParent, parseTraceParent } from './traceparent.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'

describe('a traceparent', () => {
  it('is read and written as W3C says', () => {
    const parent = { traceId: TRACE, spanId: SPAN, flags: 1 }
    expect(formatTraceParent(parent)).toBe(`00-${TRACE}-${SPAN}-01`)
    expect(parseTraceParent(`00-${TRACE}-${SPAN}-01`)).toEqual(parent)
    expect(parseTraceParent(`00-${TRACE}-${SPAN}-ff`)?.flags).toBe(255)
  })

  it.each([
    '',
    'nonsense',
    `01-${TRACE}-${SPAN}-01`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE.slice(1)}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}0-01`,
    `00-${TRACE}-${SPAN}-1`,
    `00-${TRACE}-${SPAN}-01-extra`,
    `00-${TRACE}-${SPAN}-01\n`,
    ` 00-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}-${SPAN}-zz`,
  ])('that is not one is refused: %j', (text) => {
    expect(parseTraceParent(text)).toBeNull()
  })

  it('is none where the ids are zeros', () => {
    expect(formatTraceParent({ traceId: '0'.repeat(32), spanId: '0'.repeat(16), flags: 0 })).toBeNull()
  })
})
