/** The two ids and the flags of W3C trace context. */
export interface TraceParent {
  readonly traceId: string
  readonly spanId: string
  readonly flags: number
}

const FORM = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/
const ZEROS = /^0+$/

/**
 * Reads a traceparent of version 00; null for anything else. Strict, because what is read here was written by us:
 * a text that does not look so was not.
 *
 * @example
 * parseTraceParent('00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')?.flags // 1
 */
export function parseTraceParent(text: string): TraceParent | null {
  const [, traceId, spanId, flags] = FORM.exec(text) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return null
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return null
  return { traceId, spanId, flags: Number.parseInt(flags, 16) }
}

/** The text of a traceparent, or null where the ids are none: a tracer that does nothing gives zeros. */
export function formatTraceParent({ traceId, spanId, flags }: TraceParent): string | null {
  const text = `00-${traceId}-${spanId}-${(flags & 0xff).toString(16).padStart(2, '0')}`
  return parseTraceParent(text) === null ? null : text
}
