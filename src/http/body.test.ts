import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { bodyThatCounts } from './body.ts'
import type { BoundaryRequest } from './request.ts'

const packed = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
const request = { header: (name: string) => packed[name as keyof typeof packed] } as BoundaryRequest

it('unpacks no more of a body than the limit, whatever it holds', async () => {
  const bytes = gzipSync(Buffer.alloc(1_000_000, 0x20))
  const unpacking = async () => await bodyThatCounts(request, { kind: 'raw', bytes }, 10_000)
  await expect(unpacking()).rejects.toMatchObject({ code: 'body_too_large' })
})

it('leaves what was unpacked before as it is', () => {
  const body = { kind: 'raw', bytes: Buffer.from('{}'), decoded: true } as const
  expect(bodyThatCounts(request, body, 10)).toBe(body)
})
