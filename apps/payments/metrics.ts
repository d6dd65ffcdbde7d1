/** What the service counts beside the library: docs/guides/runbook.md and deploy/prometheus go by these names. */
import { Counter, type Registry } from 'prom-client'

/** No label is an account, a key or a path that a client can choose. */
export const SERVICE_METRICS = {
  payments_http_responses_total: {
    help: 'Answers over HTTP, by the route that was found and the status.',
    labels: ['route', 'status'],
  },
  payments_refusals_total: {
    help: 'Requests that the service refused or failed with a problem of its own, by its code.',
    labels: ['code'],
  },
  payments_book_differences_total: {
    help: 'Differences from the books of a processor that were not known before.',
    labels: ['books'],
  },
} as const satisfies Readonly<Record<string, { readonly help: string; readonly labels: readonly string[] }>>

export interface ServiceCounts {
  /** `route` as it was declared; null where none was found. */
  responded(route: string | null, status: number): void
  refused(code: string): void
  booksDiffer(books: string, count: number): void
}

/** Counters of one service. What alarms ask for is there at zero, so that the first event is seen as an increase. */
export function serviceCounts(registry: Registry, books: readonly string[]): ServiceCounts {
  const counter = (name: keyof typeof SERVICE_METRICS) => {
    const { help, labels } = SERVICE_METRICS[name]
    return new Counter({ name, help, labelNames: [...labels], registers: [registry] })
  }
  const responses = counter('payments_http_responses_total')
  const refusals = counter('payments_refusals_total')
  const differences = counter('payments_book_differences_total')
  for (const code of ['overloaded', 'limits_unavailable', 'unavailable', 'internal'])
    refusals.inc({ code }, 0)
  for (const name of books) differences.inc({ books: name }, 0)
  return {
    responded: (route, status) => responses.inc({ route: route ?? 'none', status: `${status}` }),
    refused: (code) => refusals.inc({ code }),
    booksDiffer: (name, count) => differences.inc({ books: name }, count),
  }
}
