import type { Context } from 'hono'

/**
 * The answer to the client of a handler that still runs. Hono takes no response of a handler any more once there is one, so the
 * context is freed when this one has been taken by the server: then the late response of the handler can be found in it.
 */
export function lateResponse(c: Context, response: Response): Response {
  let isFree = false
  const free = () => {
    if (isFree) return
    isFree = true
    clearTimeout(timer)
    c.res = undefined
    c.finalized = false
  }
  const timer = setTimeout(free, TAKEN_MAX_MS)
  timer.unref()
  // Middleware around the layer may read it first, and look at the context in the same turn of the event loop.
  const taken = () => setImmediate(free)
  return new Response(takenFrom(response, taken), response)
}

/** Not every server takes a response whose client has hung up. */
const TAKEN_MAX_MS = 1_000

/** The same bytes, which are not asked for before they are taken. */
function takenFrom(response: Response, taken: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        taken()
        controller.enqueue(new Uint8Array(await response.arrayBuffer()))
        controller.close()
      },
      cancel: taken,
    },
    { highWaterMark: 0 },
  )
}
