import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LIMITS } from '../core/limits.ts'
import { keyRing } from '../core/ring.ts'
import type { RecordId, Reply } from '../record/index.ts'
import { Seal, type Sealed, type SealedPlace } from './index.ts'

const A = 'a'.repeat(32)
const B = 'b'.repeat(32)
const seal = new Seal(keyRing({ current: 'a', keys: { a: A, b: B, same: A } }, 'reply'))
const id: RecordId = { account: 'acct_1', operation: 'payments.create', key: 'key-0001' }
const place: SealedPlace = { kind: 'reply', id, beside: [201, 1] }
const broken = expect.objectContaining({ code: 'seal_broken', status: 500, retryable: false })
const unknown = expect.objectContaining({ code: 'seal_key_unknown', status: 503, retryable: true })

function replyWith(body: Buffer | null, headers: Reply['headers'] = []): Reply {
  return { status: 201, headers, body, schema: 1, sealedBy: null }
}

const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('\ud800', '\u0000', '\u{1F600}', '"\\'),
)
const anyId = fc.record({ account: anyText, operation: anyText, key: anyText })
const anyReply: fc.Arbitrary<Reply> = fc.record({
  status: fc.integer({ min: 100, max: 599 }),
  headers: fc.array(fc.tuple(anyText, anyText), { maxLength: 5 }),
  body: fc.option(fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))),
  schema: fc.integer({ min: 0, max: 9 }),
  sealedBy: fc.constant(null),
})

describe('a seal', () => {
  it.each([
    ['no body', null],
    ['an empty body', Buffer.alloc(0)],
    ['a short body', Buffer.from('{"id":1}')],
    ['the largest body', Buffer.alloc(LIMITS.replySizeMaxBytes, 0xff)],
  ])('gives back %s as it was', (_, body) => {
    const stored = seal.sealReply(id, replyWith(body))
    expect(stored).toMatchObject({ status: 201, headers: [], schema: 1, sealedBy: 'a' })
    const opened = seal.openReply(id, stored)
    // Not toEqual on the bodies: that takes seconds for a megabyte.
    expect({ ...opened, body: null }).toEqual(replyWith(null))
    expect(body === null ? opened.body === null : opened.body?.equals(body)).toBe(true)
  })

  it('gives back any reply of any record', () => {
    fc.assert(
      fc.property(anyId, anyReply, (someId, reply) => {
        expect(seal.openReply(someId, seal.sealReply(someId, reply))).toEqual(reply)
      }),
    )
  })

  it('gives back the bytes of an input', () => {
    const input: SealedPlace = { kind: 'input', id, beside: [] }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const plain = Buffer.from(bytes)
        expect(seal.open(input, seal.seal(input, plain))).toEqual(plain)
      }),
    )
  })

  it('shows nothing of what it holds, and never looks the same twice', () => {
    const reply = replyWith(Buffer.from('4242424242424242'), [['x-secret', 'ordinary secret text']])
    const first = seal.sealReply(id, reply)
    expect(inspect(first, { depth: 9 }) + first.body?.toString('latin1')).not.toMatch(
      /4242|ordinary|x-secret/,
    )
    expect(seal.sealReply(id, reply).body).not.toEqual(first.body)
    expect(inspect(seal, { depth: 9, showHidden: true })).not.toContain(A)
  })

  it('is larger than what it holds by a nonce, a tag and no more', () => {
    expect(seal.seal(place, Buffer.alloc(100)).bytes.length).toBe(100 + 12 + 16)
  })

  it('opens what another process with the same keys has sealed, whichever is current there', () => {
    const other = new Seal(keyRing({ current: 'b', keys: { a: A, b: B } }, 'reply'))
    const stored = seal.sealReply(id, replyWith(Buffer.from('by a')))
    expect(other.openReply(id, stored).body?.toString()).toBe('by a')
    expect(other.sealReply(id, replyWith(null)).sealedBy).toBe('b')
    expect(other.keyIds).toEqual(['b', 'a'])
  })
})

describe('a seal is broken by', () => {
  const stored = seal.sealReply(id, replyWith(Buffer.from('{"id":1}'), [['location', '/1']]))

  it('every single bit that is flipped', () => {
    const bits = stored.body!.length * 8
    for (let bit = 0; bit < bits; bit += 1) {
      const body = Buffer.from(stored.body!)
      body[bit >> 3]! ^= 1 << (bit & 7)
      expect(() => seal.openReply(id, { ...stored, body })).toThrow(broken)
    }
  })

  it('any bit that is flipped in any reply', () => {
    fc.assert(
      fc.property(anyReply, fc.nat(), (reply, someBit) => {
        const sealed = seal.sealReply(id, reply)
        const bit = someBit % (sealed.body!.length * 8)
        sealed.body![bit >> 3]! ^= 1 << (bit & 7)
        expect(() => seal.openReply(id, sealed)).toThrow(broken)
      }),
    )
  })

  it('any byte that is missing or added', () => {
    for (let length = 0; length < stored.body!.length; length += 1) {
      expect(() => seal.openReply(id, { ...stored, body: stored.body!.subarray(0, length) })).toThrow(broken)
    }
    const longer = Buffer.concat([stored.body!, Buffer.alloc(1)])
    expect(() => seal.openReply(id, { ...stored, body: longer })).toThrow(broken)
    expect(() => seal.openReply(id, { ...stored, body: null })).toThrow(broken)
  })

  it('another account, operation or key', () => {
    fc.assert(
      fc.property(anyId, anyId, fc.uint8Array({ maxLength: 50 }), (one, other, bytes) => {
        fc.pre(JSON.stringify(one) !== JSON.stringify(other))
        const sealed = seal.seal({ ...place, id: one }, Buffer.from(bytes))
        expect(() => seal.open({ ...place, id: other }, sealed)).toThrow(broken)
      }),
    )
    for (const name of ['account', 'operation', 'key'] as const) {
      expect(() => seal.openReply({ ...id, [name]: `${id[name]}x` }, stored)).toThrow(broken)
    }
  })

  it('another split of the same characters', () => {
    const shifted = { account: 'acct_', operation: '1payments.create', key: id.key }
    expect(() => seal.openReply(shifted, stored)).toThrow(broken)
  })

  it('another status, schema or kind', () => {
    fc.assert(
      fc.property(anyReply, anyReply, (one, other) => {
        fc.pre(one.status !== other.status || one.schema !== other.schema)
        const { status, schema } = other
        expect(() => seal.openReply(id, { ...seal.sealReply(id, one), status, schema })).toThrow(broken)
      }),
    )
    const sealed: Sealed = { bytes: stored.body!, sealedBy: 'a' }
    expect(seal.open(place, sealed)).toBeInstanceOf(Buffer)
    expect(() => seal.open({ ...place, kind: 'input' }, sealed)).toThrow(broken)
    expect(() => seal.open({ ...place, beside: [201] }, sealed)).toThrow(broken)
    expect(() => seal.open({ ...place, beside: [20, 11] }, sealed)).toThrow(broken)
  })

  it('another key id, also where it has the same bytes', () => {
    for (const sealedBy of ['b', 'same']) {
      expect(() => seal.openReply(id, { ...stored, sealedBy })).toThrow(broken)
    }
  })

  it('other bytes under the same key id', () => {
    const mistaken = new Seal(keyRing({ current: 'a', keys: { a: B } }, 'reply'))
    expect(() => mistaken.openReply(id, stored)).toThrow(broken)
  })
})

describe('without its key', () => {
  const stored = seal.sealReply(id, replyWith(Buffer.from('{"id":1}')))

  it('a reply is not opened, and not taken for a broken one', () => {
    expect(() => new Seal(keyRing(B, 'reply')).openReply(id, stored)).toThrow(unknown)
    expect(() => new Seal(null).openReply(id, stored)).toThrow(unknown)
    expect(() => new Seal(null).openReply(id, stored)).toThrow('"a"')
  })

  it('nothing is sealed, and what is plain stays as it is, with and without a ring', () => {
    const plain = replyWith(Buffer.from('{}'), [['a', 'b']])
    const none = new Seal(null)
    expect(none.sealReply(id, plain)).toEqual(plain)
    expect(none.openReply(id, plain)).toEqual(plain)
    expect(none.open(place, none.seal(place, Buffer.from('x')))).toEqual(Buffer.from('x'))
    expect(none.keyIds).toEqual([])
    expect(seal.openReply(id, plain)).toEqual(plain)
  })
})
