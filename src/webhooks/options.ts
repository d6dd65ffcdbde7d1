import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { askDns, askSystem, type ResolveName, type TargetRules } from './target.ts'

export interface WebhooksOptions {
  /**
   * For development alone: also to private addresses, to any port, and over http.
   *
   * @default false
   */
  readonly allowPrivate?: boolean | undefined
  /**
   * How names are resolved; by default DNS is asked; with `allowPrivate`, the operating system. What it answers is judged all the same.
   *
   * @default DNS is asked; with `allowPrivate` the operating system
   */
  readonly resolve?: ResolveName | undefined
  /**
   * How long one delivery may take.
   *
   * @default 15_000
   */
  readonly timeoutMs?: number | undefined
  /**
   * The pauses between attempts; after the last attempt the delivery has failed.
   *
   * @default [5_000, 60_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 50_400_000, 72_000_000, 86_400_000]
   */
  readonly retryAfterMs?: readonly number[] | undefined
  /**
   * Deliveries under way at once, in one deliverer.
   *
   * @default 64
   */
  readonly atOnce?: number | undefined
  /**
   * Those among them to one endpoint.
   *
   * @default 4
   */
  readonly perEndpoint?: number | undefined
  /**
   * How long messages and their deliveries are kept.
   *
   * @default 2_592_000_000
   */
  readonly retentionMs?: number | undefined
}

export interface WebhooksSettings extends TargetRules {
  readonly timeoutMs: number
  readonly retryAfterMs: readonly number[]
  readonly atOnce: number
  readonly perEndpoint: number
  readonly retentionMs: number
}

const NAMES: OptionNames<WebhooksOptions> = {
  allowPrivate: true,
  resolve: true,
  timeoutMs: true,
  retryAfterMs: true,
  atOnce: true,
  perEndpoint: true,
  retentionMs: true,
}

export function checkOptions(options: WebhooksOptions): WebhooksSettings {
  refuseUnknown('webhooks()', options, NAMES)
  const { allowPrivate = false } = options
  const { resolve = allowPrivate ? askSystem : askDns() } = options
  const { retryAfterMs = LIMITS.webhookRetryAfterMs } = options
  if (typeof allowPrivate !== 'boolean') refuse('allowPrivate is true or false.')
  if (typeof resolve !== 'function') refuse('resolve is a function.')
  if (!Array.isArray(retryAfterMs) || retryAfterMs.length > LIMITS.historyMax) {
    refuse(`retryAfterMs is a list of at most ${LIMITS.historyMax} pauses.`)
  }
  const timeoutMs = whole('timeoutMs', options.timeoutMs ?? LIMITS.webhookTimeoutMs)
  if (timeoutMs > LIMITS.timerMaxMs) refuse('timeoutMs is more than a timer can wait.')
  return {
    allowPrivate,
    resolve,
    timeoutMs,
    retryAfterMs: retryAfterMs.map((pauseMs) => whole('retryAfterMs', pauseMs)),
    atOnce: whole('at_once', options.atOnce ?? LIMITS.webhooksAtOnce),
    perEndpoint: whole('perEndpoint', options.perEndpoint ?? LIMITS.webhooksPerEndpoint),
    retentionMs: whole('retentionMs', options.retentionMs ?? LIMITS.webhookRetentionMs),
  }
}

function whole(name: string, value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 1) return value as number
  return refuse(`${name} must be a whole number, at least 1.`)
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
