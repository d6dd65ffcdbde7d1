import type { ServerResponse } from 'node:http'
import type { HttpReply } from '../../boundary/index.ts'
import { bytesOf, listOf } from './capture.ts'

/**
 * Listens to a response that leaves while it is made. What is larger than the limit is not remembered: the rest is
 * only counted, so that a long stream takes no memory.
 */
export function teeResponse(response: ServerResponse, size_max_bytes: number): Promise<HttpReply> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size_bytes = 0
    const listen = (chunk: unknown, rest: readonly unknown[]) => {
      if (chunk === undefined || chunk === null || typeof chunk === 'function') return
      const bytes = bytesOf(chunk, rest)
      size_bytes += bytes.length
      if (size_bytes <= size_max_bytes) chunks.push(bytes)
      else chunks.length = 0
    }
    const { write, end } = response
    response.write = ((chunk: unknown, ...rest: unknown[]) => {
      listen(chunk, rest)
      return (write as (...given: unknown[]) => boolean).call(response, chunk, ...rest)
    }) as ServerResponse['write']
    response.end = ((...given: unknown[]) => {
      listen(given[0], given.slice(1))
      const result = (end as (...given: unknown[]) => ServerResponse).apply(response, given)
      // A body of more than the limit is stood for by one that is too large to be kept.
      const body = size_bytes > size_max_bytes ? Buffer.alloc(size_max_bytes + 1) : Buffer.concat(chunks)
      resolve({ status: response.statusCode, headers: listOf(response.getHeaders()), body })
      return result
    }) as ServerResponse['end']
  })
}
