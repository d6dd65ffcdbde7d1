import { OnlyonceError } from '../errors.ts'
import { LIMITS } from '../limits.ts'
import { type OptionNames, refuseUnknown } from '../options.ts'
import { askDns, askSystem, type ResolveName, type TargetRules } from './target.ts'

export interface WebhooksOptions {
  /** For development alone: also to private addresses, to any port, and over http. */
  readonly allow_private?: boolean | undefined
  /** How names are resolved; by default DNS is asked; with `allow_private`, the operating system. What it answers is judged all the same. */
  readonly resolve?: ResolveName | undefined
  /** How long one delivery may take. */
  readonly timeout_ms?: number | undefined
  /** The pauses between attempts; after the last attempt the delivery has failed. */
  readonly retry_after_ms?: readonly number[] | undefined
  /** Deliveries under way at once, in one deliverer. */
  readonly at_once?: number | undefined
  /** Those among them to one endpoint. */
  readonly per_endpoint?: number | undefined
  /** How long messages and their deliveries are kept. */
  readonly retention_ms?: number | undefined
}

export interface WebhooksSettings extends TargetRules {
  readonly timeout_ms: number
  readonly retry_after_ms: readonly number[]
  readonly at_once: number
  readonly per_endpoint: number
  readonly retention_ms: number
}

const NAMES: OptionNames<WebhooksOptions> = {
  allow_private: true,
  resolve: true,
  timeout_ms: true,
  retry_after_ms: true,
  at_once: true,
  per_endpoint: true,
  retention_ms: true,
}

export function checkOptions(options: WebhooksOptions): WebhooksSettings {
  refuseUnknown('webhooks()', options, NAMES)
  const { allow_private = false } = options
  const { resolve = allow_private ? askSystem : askDns() } = options
  const { retry_after_ms = LIMITS.webhook_retry_after_ms } = options
  if (typeof allow_private !== 'boolean') refuse('allow_private is true or false.')
  if (typeof resolve !== 'function') refuse('resolve is a function.')
  if (!Array.isArray(retry_after_ms) || retry_after_ms.length > LIMITS.history_max) {
    refuse(`retry_after_ms is a list of at most ${LIMITS.history_max} pauses.`)
  }
  const timeout_ms = whole('timeout_ms', options.timeout_ms ?? LIMITS.webhook_timeout_ms)
  if (timeout_ms > LIMITS.timer_max_ms) refuse('timeout_ms is more than a timer can wait.')
  return {
    allow_private,
    resolve,
    timeout_ms,
    retry_after_ms: retry_after_ms.map((pause_ms) => whole('retry_after_ms', pause_ms)),
    at_once: whole('at_once', options.at_once ?? LIMITS.webhooks_at_once),
    per_endpoint: whole('per_endpoint', options.per_endpoint ?? LIMITS.webhooks_per_endpoint),
    retention_ms: whole('retention_ms', options.retention_ms ?? LIMITS.webhook_retention_ms),
  }
}

function whole(name: string, value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 1) return value as number
  return refuse(`${name} must be a whole number, at least 1.`)
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
