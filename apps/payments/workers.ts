import type { Operation } from 'onlyonce'
import type { Destination, RunJob } from 'onlyonce/outbox'
import { type RunningWorkers, startWorkers, type Worker } from 'onlyonce/workers'
import { GATEWAY_EVENTS, hearGateway } from './gateway-events.ts'
import { checkpointer } from './ledger/index.ts'
import { expirer, forgetter, marker, sweeper } from './payments/index.ts'
import { bookReconciler } from './reconcile/index.ts'
import type { Service } from './service.ts'
import { openWebhooks, WEBHOOKS } from './webhooks.ts'

/** What runs in the background. Each list is the one place where something is added to it. */
export interface Background {
  /** Operations that any worker can finish when the process that began them is gone. */
  readonly operations: readonly Operation<never, unknown>[]
  /** Where events go, by a name that is kept in the database. */
  readonly destinations: Readonly<Record<string, Destination>>
  /** Who runs staged jobs, by the name under which they are staged. */
  readonly jobs: Readonly<Record<string, RunJob>>
  /** Workers of the service's own: each one bounded batch at a time, in any number of processes. */
  readonly workers: readonly Worker[]
}

export function backgroundOf(service: Service): Background {
  const hooks = openWebhooks(service)
  return {
    operations: Object.values(service.operations),
    destinations: { [WEBHOOKS]: hooks.destination },
    jobs: { [GATEWAY_EVENTS.job]: hearGateway(service.once) },
    workers: [
      hooks.deliverer(),
      expirer(service),
      marker(service),
      sweeper(service),
      forgetter(service),
      bookReconciler(service),
      checkpointer(service),
    ],
  }
}

/** Runs all of it until it is stopped. */
export function runWorkers(
  service: Service,
  options: { readonly background?: Background; readonly everyMs?: number } = {},
): RunningWorkers {
  const { once, config } = service
  const { background = backgroundOf(service), everyMs } = options
  const { operations, destinations, jobs, workers } = background
  const relays = Object.keys(destinations).length + Object.keys(jobs).length > 0
  return startWorkers(once, {
    ...(everyMs !== undefined && { everyMs }),
    operations,
    completer: { graceMs: config.timing.graceMs, leaseMs: config.timing.leaseMs },
    reconciler: { leaseMs: config.timing.leaseMs },
    ...(relays && { relay: { destinations, jobs } }),
    workers,
  })
}
