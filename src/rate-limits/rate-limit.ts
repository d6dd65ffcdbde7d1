import { createHash } from 'node:crypto'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { encodeParts } from '../core/parts.ts'
import { Guard } from './guard.ts'
import { KnownWindows } from './known-windows.ts'
import {
  checkRule,
  checkText,
  LIMITER_NAMES,
  type LimiterOptions,
  RULE_NAMES,
  type Rule,
  resolveOptions,
  whole,
} from './options.ts'
import { RATES } from './sql.ts'
import { Takes } from './takes.ts'
import { blindRefusal, blindVerdict, type Verdict, verdictOf, type Window, windowOf } from './verdict.ts'
import { Windows } from './windows.ts'

export interface RateLimitOptions extends LimiterOptions, Rule {}

const NAMES: OptionNames<RateLimitOptions> = { ...LIMITER_NAMES, ...RULE_NAMES }

/** A number of requests in a length of time, for each account by itself. */
export interface RateLimit {
  /** Makes the tables where they are missing. Safe in many processes at once; the first take does it where no process has. */
  start(): Promise<void>
  /** Takes points of the account's window, or none where they do not fit. Does not throw when the store is away. */
  take(account: string, points?: number): Promise<Verdict>
  /**
   * Gives back what a take has taken, to the window that it was taken of: for a request that began nothing. `taken` is the very verdict of
   * `take`; a second time gives nothing. Best effort, and does not throw: where the store is away, the points stay taken.
   */
  giveBack(taken: Verdict): Promise<void>
  /** Looks without taking. Throws when the store is away. */
  peek(account: string): Promise<Window>
  /** Ends the window of an account at once; other processes notice within a tenth of a second. */
  forget(account: string): Promise<void>
}

/**
 * Limits how fast an account may be, over all processes that share a database. Windows are fixed: one begins with the first
 * take and ends `perMs` later by the database's clock, so in a stretch of that length that lies across two windows up to
 * twice the points can pass.
 *
 * @example
 * const limit = rateLimit({ pool, name: 'live', points: 100, perMs: 1_000 })
 * const verdict = await limit.take('acct_1')
 */
export function rateLimit(options: RateLimitOptions): RateLimit {
  refuseUnknown('rateLimit()', options, NAMES)
  const { pool, name, schema, named, onError, ...rest } = resolveOptions(options)
  const rule = checkRule(options)
  const guard = new Guard({ pool, name, schema, named, onError, ...rest })
  const windows = new Windows({
    pool,
    schema,
    table: RATES,
    prefix: `${name}/${rule.perMs}`,
    named,
    waitMaxMs: rest.waitMaxMs,
    ...rule,
  })
  const takes = new Takes(windows, rest.waitMaxMs)
  const known = new KnownWindows(rule)
  const granted = new WeakMap<
    Verdict,
    { readonly key: string; readonly points: number; readonly window: string }
  >()
  // A digest has one length for every name of an account.
  const keyOf = (account: string) =>
    createHash('sha256')
      .update(encodeParts(checkText('account', account)))
      .digest('base64url')
  return {
    start: () => guard.start(),
    async take(account, points = 1) {
      const key = keyOf(account)
      whole('points', points, rule.points)
      const take = await guard.ask(key, () => takes.take(key, points))
      if (take === null) {
        return onError === 'refuse'
          ? blindRefusal(name, rule)
          : blindVerdict(name, [{ rule, known }], key, points)
      }
      known.note(key, take)
      const verdict = verdictOf(name, rule, take)
      if (take.granted) granted.set(verdict, { key, points, window: take.window })
      return verdict
    },
    async giveBack(taken) {
      const found = granted.get(taken)
      if (found === undefined) return
      granted.delete(taken)
      await windows.giveBack(found.key, found.points, found.window).catch(() => {})
      takes.ask(found.key)
    },
    async peek(account) {
      const key = keyOf(account)
      return windowOf(name, rule, await guard.demand(() => windows.get(key)))
    },
    async forget(account) {
      const key = keyOf(account)
      await guard.demand(() => windows.delete(key))
      takes.ask(key)
      known.forget(key)
    },
  }
}
