/** The two ids and the flags of W3C trace context. */
export interface TraceParent {
  readonly trace_id: string
  readonly span_id: string
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
  const [, trace_id, span_id, flags] = FORM.exec(text) ?? []
  if (trace_id === undefined || span_id === undefined || flags === undefined) return null
  if (ZEROS.test(trace_id) || ZEROS.test(span_id)) return null
  return { trace_id, span_id, flags: Number.parseInt(flags, 16) }
}

/** The text of a traceparent, or null where the ids are none: a tracer that does nothing gives zeros. */
export function formatTraceParent({ trace_id, span_id, flags }: TraceParent): string | null {
  const text = `00-${trace_id}-${span_id}-${(flags & 0xff).toString(16).padStart(2, '0')}`
  return parseTraceParent(text) === null ? null : text
}
