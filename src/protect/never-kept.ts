const NEVER_KEPT =
  /^(?:set-cookie2?|date|age|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|(?:x-)?ratelimit.*|x-rate-limit.*|stripe-should-retry|stripe-rate-limited-reason|traceparent|tracestate|server-timing|x-(?:b3-.*|request-id|trace-id|amzn-trace-id))$/i

/** Headers that are never stored or replayed, also where an option names them: they belong to one connection, one client or one moment. */
export function isNeverKept(name: string): boolean {
  return NEVER_KEPT.test(name)
}
