/** A request that can be sent any number of times: the same bytes each time. */
export interface Prepared {
  readonly target: string | Request
  readonly url: string
  readonly method: string
  readonly headers: Headers
  readonly body: string | Uint8Array<ArrayBuffer> | null
  /** Everything else that fetch takes. */
  readonly init: RequestInit
  readonly signal: AbortSignal | null
}

/** Reads the request once. A body that cannot be sent twice is a TypeError. */
export async function prepare(
  input: string | URL | Request,
  init: RequestInit,
  more: RequestInit['headers'],
  baseUrl: string | URL | undefined,
): Promise<Prepared> {
  const request = typeof input === 'object' && 'headers' in input ? input : null
  const url = request?.url ?? String(baseUrl === undefined ? input : new URL(input as string, baseUrl))
  const headers = new Headers(more)
  new Headers(init.headers ?? request?.headers).forEach((value, name) => {
    headers.set(name, value)
  })
  let { body = null } = init as { body?: RequestInit['body'] | Uint8Array<ArrayBuffer> }
  if (body === null && request?.body) body = new Uint8Array(await request.arrayBuffer())
  if (body !== null && typeof body === 'object') {
    if ('getReader' in body || Symbol.asyncIterator in body) {
      throw new TypeError(
        'A stream cannot be sent twice. Read it first: await new Response(stream).arrayBuffer()',
      )
    }
    // A form gets its boundary here, once.
    const read = new Response(body as Blob)
    const type = read.headers.get('content-type')
    if (type !== null && !headers.has('content-type')) headers.set('content-type', type)
    body = new Uint8Array(await read.arrayBuffer())
  }
  return {
    target: request ?? url,
    url,
    method: (init.method ?? request?.method ?? 'GET').toUpperCase(),
    headers,
    body: body as string | Uint8Array<ArrayBuffer> | null,
    init,
    signal: init.signal ?? request?.signal ?? null,
  }
}
