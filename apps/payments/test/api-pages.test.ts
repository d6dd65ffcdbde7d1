import { describe, expect, it } from 'vitest'
import { BY_ID, pageOf, readPage } from '../api/pages.ts'
import { makeId } from '../ids.ts'

const THINGS = BY_ID('things', 'pay')
const OTHERS = BY_ID('others', 'pay')
const ids = Array.from({ length: 7 }, () => makeId('pay'))
  .sort()
  .reverse()
const things = ids.map((id) => ({ id }))

/** As a database would: newest first, those behind the position, one more than is shown. */
function list(query: { limit?: number; cursor?: string }) {
  const { limit, after } = readPage(THINGS, query)
  const found = things.filter(({ id }) => after === null || id < after[0]!).slice(0, limit + 1)
  return pageOf(THINGS, found, limit, ({ id }) => [id])
}

const refusal = expect.objectContaining({
  code: 'invalid_request',
  details: expect.objectContaining({ field: 'cursor' }),
})

describe('pages', () => {
  it.each([1, 2, 3, 6, 7, 8])('of %i show everything once, in order, and end', (limit) => {
    const shown: string[] = []
    let cursor: string | null = null
    do {
      const page = list({ limit, ...(cursor !== null && { cursor }) })
      expect(page.data.length).toBeLessThanOrEqual(limit)
      expect(page.has_more).toBe(page.next_cursor !== null)
      shown.push(...page.data.map(({ id }) => id))
      cursor = page.next_cursor
    } while (cursor !== null && shown.length < 20)
    expect(shown).toEqual(ids)
  })

  it('have a size of their own where none is asked for', () => {
    expect(readPage(THINGS, {})).toEqual({ limit: 20, after: null })
  })

  const cursor = list({ limit: 2 }).next_cursor!
  const wrap = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  it.each([
    ['made up', 'nonsense'],
    ['cut', cursor.slice(0, -4)],
    ['longer', `${cursor}A`],
    ['in another alphabet', `${cursor}=`],
    ['of another form', wrap({ name: 'things' })],
    ['with too much', wrap(['things', ids[0], ids[1]])],
    ['with too little', wrap(['things'])],
    ['with a number', wrap(['things', 1])],
    ['with something else in it', wrap(['things', `${ids[0]}' OR 1=1`])],
    ['of nothing', wrap(null)],
  ])('begin at no cursor that is %s', (_, given) => {
    expect(() => readPage(THINGS, { cursor: given })).toThrow(refusal)
  })

  it('begin at no cursor of another list', () => {
    expect(() => readPage(OTHERS, { cursor })).toThrow(refusal)
  })
})
