import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseMultipart } from './multipart.ts'
import { prepareRequest } from './prepare.ts'

const disposition = (name: string) => `Content-Disposition: form-data; name="${name}"`

function written(boundary: string, parts: readonly (readonly [head: string, content: Buffer])[]): Buffer {
  const pieces = parts.flatMap(([head, content]) => [
    Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`, 'latin1'),
    content,
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)])
}

const type = (boundary: string) => `multipart/form-data; boundary=${boundary}`
const refused = (mediaType: string, body: string) => {
  expect(() => parseMultipart(mediaType, Buffer.from(body, 'latin1'))).toThrow(/not well-formed multipart/)
}

describe('a form', () => {
  it('is read as it was written, whatever bytes it holds', () => {
    const content = Buffer.from([0, 255, 13, 10, 45, 45, 13, 10, 13, 10])
    const { parts } = parseMultipart(type('x'), written('x', [[`${disposition('a')}\r\nX-B:  c `, content]]))
    expect(parts[0]!.headers).toEqual([
      ['content-disposition', 'form-data; name="a"'],
      ['x-b', 'c'],
    ])
    expect(Buffer.compare(parts[0]!.content, content)).toBe(0)
  })

  it('is what fetch sends, with no part, one, or many', async () => {
    for (const count of [0, 1, 3]) {
      const data = new FormData()
      for (let i = 0; i < count; i += 1) data.append(`f${i}`, new Blob([`é\r\n${i}`]), `n"${i}.txt`)
      const { headers, body } = await sent(data)
      expect(parseMultipart(headers, body).parts).toHaveLength(count)
    }
  })

  it('is refused where parsers forgive: two bodies would be the same to them', () => {
    const part = `--x\r\n${disposition('a')}\r\n\r\n1`
    for (const body of [
      '',
      `\r\n${part}\r\n--x--`,
      `preamble\r\n${part}\r\n--x--`,
      `${part}\r\n--x--epilogue`,
      `${part}\r\n--x--\r\nepilogue`,
      `${part}\r\n--x`,
      `--x \r\n${disposition('a')}\r\n\r\n1\r\n--x--`,
      `--x\n${disposition('a')}\n\n1\n--x--`,
      `${part}\n--x\r\n--x--`,
      `${part}--x--`,
      `${part}234--x--`,
      `${part}234\n--x--`,
      `${part}\r\n--xy\r\n--x--`,
      `--x\r\n--x--`,
      `--x\r\n\r\n1\r\n--x--`,
      `--x\r\nContent-Type: text/plain\r\n\r\n1\r\n--x--`,
      `--x\r\n${disposition('a')}\r\n folded\r\n\r\n1\r\n--x--`,
      `--x\r\n${disposition('a')}\r\n${disposition('b')}\r\n\r\n1\r\n--x--`,
      `--x\r\n${disposition('a')}\r\nBad Name: 1\r\n\r\n1\r\n--x--`,
    ]) {
      refused(type('x'), body)
    }
  })

  it('has exactly one boundary, and one that may be', () => {
    const body = `--x\r\n${disposition('a')}\r\n\r\n1\r\n--x--`
    for (const mediaType of [
      'multipart/form-data',
      'multipart/form-data; boundary=',
      'multipart/form-data; boundary=x; boundary=y',
      'multipart/form-data; boundary=x, boundary=y',
      'multipart/form-data; boundary="x',
      'multipart/form-data; junk; boundary=x',
      `multipart/form-data; boundary=${'x'.repeat(71)}`,
    ]) {
      refused(mediaType, body)
    }
    expect(
      parseMultipart('Multipart/Form-Data; charset=utf-8; Boundary="x"', Buffer.from(body)).parameters,
    ).toEqual(['charset', 'utf-8'])
  })
})

describe('what is signed of a form', () => {
  const preimageOf = (boundary: string, parts: readonly (readonly [string, Buffer])[]) => {
    const request = { method: 'POST', operation: 'a', mediaType: type(boundary), multipart: true }
    const { text, bytes } = prepareRequest({ ...request, body: written(boundary, parts) })
    return Buffer.concat([Buffer.from(text), bytes!]).toString('latin1')
  }
  const part = fc.tuple(
    fc.stringMatching(/^[a-z;" ]{1,6}$/).map(disposition),
    fc.uint8Array({ maxLength: 6 }).map((bytes) => Buffer.from(bytes)),
  )

  it('differs where a part has the same bytes under another name', () => {
    const of = (name: string) => preimageOf('----one', [[disposition(name), Buffer.from('same')]])
    expect(of('amount')).not.toBe(of('refund'))
  })

  it('is the same under another boundary, and differs whenever a part differs', () => {
    fc.assert(
      fc.property(fc.array(part, { maxLength: 3 }), fc.array(part, { maxLength: 3 }), (one, other) => {
        const equal =
          one.length === other.length &&
          one.every(
            ([head, content], i) => head.trimEnd() === other[i]![0].trimEnd() && content.equals(other[i]![1]),
          )
        expect(preimageOf('----one', one) === preimageOf('----another', other)).toBe(equal)
        expect(preimageOf('----one', one)).toBe(preimageOf('----another', one))
      }),
    )
  })
})

/** As fetch writes a form. */
async function sent(data: FormData): Promise<{ headers: string; body: Buffer }> {
  const request = new Request('http://localhost', { method: 'POST', body: data })
  return {
    headers: request.headers.get('content-type')!,
    body: Buffer.from(await request.arrayBuffer()),
  }
}
