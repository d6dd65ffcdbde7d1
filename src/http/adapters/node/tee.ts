import type { ServerResponse } from 'node:http'
import type { HttpReply } from '../../index.ts'
import { bytesOf, callbackOf, listOf, takeHead } from './arguments.ts'
import { CapturedResponse, type Headers, isChunk } from './capture.ts'
import { Outer } from './late.ts'
import { Overrides } from './overrides.ts'
import { Pace } from './pace.ts'
import type { Shield } from './shield.ts'

/** A response that leaves while it is made. */
export interface Tee {
  /** What it has come to in the end. */
  readonly ended: Promise<HttpReply>
  /** Answers the client, to whom nothing has left yet, without the handler. The handler's reply is captured all the same. */
  replace(reply: HttpReply): void
}

/**
 * Listens to a response that leaves while it is made. What is larger than the limit is not remembered: the rest is
 * only counted, so that a long stream takes no memory. When the client is gone, the rest is made for the record alone.
 */
export function teeResponse(
  response: ServerResponse,
  sizeMaxBytes: number,
  shield: Pick<Shield, 'clientIsGone' | 'whenGone'>,
  before: Headers,
): Tee {
  const outer = new Outer(response)
  const overrides = new Overrides(response)
  let replace = (_: HttpReply): void => {}
  const ended = new Promise<HttpReply>((resolve, reject) => {
    replace = (reply) => {
      overrides.undo()
      const late = new CapturedResponse(response, before, sizeMaxBytes, outer)
      late.ended.then(resolve, reject)
      late.replace(reply)
    }
    const chunks: Buffer[] = []
    let sizeBytes = 0
    let isEnded = false
    const listen = (chunk: unknown, rest: readonly unknown[]) => {
      if (!isChunk(chunk) || isEnded) return
      const bytes = bytesOf(chunk, rest)
      sizeBytes += bytes.length
      if (sizeBytes <= sizeMaxBytes) chunks.push(bytes)
      else chunks.length = 0
    }
    const { writeHead, write, end, destroy } = response
    const pace = new Pace(response)
    // The client is gone and reads no more, so a handler that waits for `drain` would wait for ever.
    shield.whenGone(() => {
      overrides.property('writableNeedDrain', () => false)
      pace.goOnSoon()
    })
    overrides.method('writeHead', (status: number, ...rest: unknown[]) => {
      if (!response.headersSent) takeHead(response, status, rest)
      return Reflect.apply(writeHead, response, [status])
    })
    overrides.method('write', (...given: unknown[]) => {
      listen(given[0], given.slice(1))
      if (!shield.clientIsGone) return Reflect.apply(write, response, given)
      process.nextTick(callbackOf(given) ?? (() => {}))
      pace.goOnSoon()
      return false
    })
    overrides.method('end', (...given: unknown[]) => {
      listen(given[0], given.slice(1))
      isEnded = true
      const { statusCode: status } = response
      const headers = listOf(response)
      const result = shield.clientIsGone ? response : Reflect.apply(end, response, given)
      // A body of more than the limit is stood for by one that is too large to be kept.
      const body = sizeBytes > sizeMaxBytes ? Buffer.alloc(sizeMaxBytes + 1) : Buffer.concat(chunks)
      overrides.undo()
      resolve({ status, headers, body })
      return result
    })
    // A stream has failed on its way: there will be no end.
    overrides.method('destroy', (error?: Error) => {
      reject(error ?? new Error('The handler destroyed its response.'))
      return Reflect.apply(destroy, response, [error])
    })
  })
  return { ended, replace }
}
