import type { HttpReply } from '../../index.ts'

/** A response that has been read whole, and one like it that can still be sent. */
export interface Captured {
  readonly reply: HttpReply
  readonly response: Response
}

/** Reads a response to its end: nothing of its body, of any stream, leaves before. */
export async function capture(response: Response): Promise<Captured> {
  const { status, statusText, headers } = refuseError(response)
  const body = Buffer.from(await response.arrayBuffer())
  const init = { status, statusText, headers: new Headers(headers) }
  // The body is whole now; a server that is told both this and a length sends a response that clients refuse.
  init.headers.delete('transfer-encoding')
  return {
    reply: { status, headers: [...headers], body },
    response: new Response(bodyFor(status, body), init),
  }
}

/** A reply as a response. `before` are headers that were there before any handler ran. */
export function responseOf({ status, headers, body }: HttpReply, before?: Headers): Response {
  const all = new Headers(before)
  for (const [name] of headers) all.delete(name)
  for (const [name, value] of headers) all.append(name, value)
  if (NULL_BODY.includes(status)) all.delete('content-length')
  else all.set('content-length', `${body.length}`)
  return new Response(bodyFor(status, body), { status, headers: all })
}

/**
 * A response whose body leaves while it is made, and what it has come to in the end. `signal` tells that its client is gone,
 * and `isOver` that the time of its handler is over.
 */
export function overhear(
  response: Response,
  sizeMaxBytes: number,
  signal: AbortSignal,
  isOver: () => boolean,
): { readonly response: Response; readonly ended: Promise<HttpReply> } {
  const { status, statusText, headers } = refuseError(response)
  const list = [...headers]
  if (response.body === null) {
    return { response, ended: Promise.resolve({ status, headers: list, body: Buffer.alloc(0) }) }
  }
  const { stream, ended } = listenTo(response.body, sizeMaxBytes, signal, isOver)
  return {
    response: new Response(stream, { status, statusText, headers: new Headers(headers) }),
    ended: ended.then((body) => ({ status, headers: list, body })),
  }
}

/**
 * Passes a stream on at the pace of its reader. When there is no reader any more it is read to its end all the same:
 * the work goes on, and its reply is stored. What is larger than the limit is only counted, so that a long stream takes no
 * memory.
 */
function listenTo(
  source: ReadableStream<Uint8Array>,
  sizeMaxBytes: number,
  signal: AbortSignal,
  isOver: () => boolean,
): { readonly stream: ReadableStream<Uint8Array>; readonly ended: Promise<Buffer> } {
  const reader = source.getReader()
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  let settle: { resolve(body: Buffer): void; reject(error: unknown): void }
  const ended = new Promise<Buffer>((resolve, reject) => {
    settle = { resolve, reject }
  })
  const next = async (): Promise<Uint8Array | null> => {
    try {
      const { done, value } = await reader.read()
      if (done) {
        // A body of more than the limit is stood for by one that is too large to be kept.
        const large = sizeBytes > sizeMaxBytes
        settle.resolve(large ? Buffer.alloc(sizeMaxBytes + 1) : Buffer.concat(chunks))
        return null
      }
      sizeBytes += value.length
      if (sizeBytes <= sizeMaxBytes) chunks.push(Buffer.from(value))
      else chunks.length = 0
      return value
    } catch (error) {
      settle.reject(error)
      throw error
    }
  }
  const drain = async () => {
    while ((await next()) !== null) {
      // No client sets the pace any more: a source that makes its data at once would keep everything else from running.
      await new Promise((resolve) => setImmediate(resolve))
      if (sizeBytes > sizeMaxBytes && isOver()) return await giveUp()
    }
  }
  // Too large to be kept and too late to be waited for: a stream without an end would go on for ever.
  const giveUp = async () => {
    const error = new Error('The response was too large to be kept, and its time was over.')
    settle.reject(error)
    await reader.cancel(error)
  }
  let isGone = false
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const chunk = await next()
      // The rest is read for the record alone, so that what is left here must not look whole.
      if (isGone) controller.error(new Error('The client was gone before the response was whole.'))
      else if (chunk === null) controller.close()
      else controller.enqueue(chunk)
    },
    cancel() {
      drain().catch(() => {})
    },
  })
  // Not every server cancels the stream of a client that is gone; some just stop taking from it.
  const onGone = () => {
    isGone = true
    drain().catch(() => {})
  }
  if (signal.aborted) onGone()
  else signal.addEventListener('abort', onGone, { once: true })
  ended.catch(() => {}).finally(() => signal.removeEventListener('abort', onGone))
  return { stream, ended }
}

/** What says that there is no response at all cannot be stored or sent again as one. */
function refuseError(response: Response): Response {
  if (response.status < 200) throw new TypeError(`A protected handler cannot answer ${response.status}.`)
  return response
}

/** These may have no body, not even an empty one. */
const NULL_BODY: readonly number[] = [204, 205, 304]

function bodyFor(status: number, body: Buffer): Buffer<ArrayBuffer> | null {
  return body.length === 0 || NULL_BODY.includes(status) ? null : (body as Buffer<ArrayBuffer>)
}
