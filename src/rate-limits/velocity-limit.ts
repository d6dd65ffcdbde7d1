import { createHmac } from 'node:crypto'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
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
  refuse,
  resolveOptions,
  whole,
} from './options.ts'
import { VELOCITIES } from './sql.ts'
import { type Take, Takes } from './takes.ts'
import { blindRefusal, blindVerdict, type Verdict, verdictOf, type Window, windowOf } from './verdict.ts'
import { Windows } from './windows.ts'

export interface VelocityLimitOptions extends LimiterOptions {
  /** All of them hold at once: three in a minute, and ten in a day. */
  readonly rules: readonly Rule[]
  /** Subjects are stored as digests under it, of at least 32 bytes. With another secret all counts begin anew. */
  readonly secret: string | Uint8Array
}

const NAMES: OptionNames<VelocityLimitOptions> = { ...LIMITER_NAMES, rules: true, secret: true }

/** How often something may be tried with one subject, such as a card, under any keys. */
export interface VelocityLimit {
  /** Makes the tables where they are missing. Safe in many processes at once; the first take does it where no process has. */
  start(): Promise<void>
  /** Takes points of every window of the subject, or of none. Does not throw when the store is away. */
  take(account: string, subject: string, points?: number): Promise<Verdict>
  /**
   * Gives back what a take has taken, to the windows that it was taken of: for a try that came to nothing before anything was tried.
   * `taken` is the very verdict of `take`; once is enough. Best effort, and does not throw: where the store is away, the try stays counted.
   */
  giveBack(taken: Verdict): Promise<void>
  /** The windows, the shortest first. Throws when the store is away. */
  peek(account: string, subject: string): Promise<readonly Window[]>
  /** Ends all windows of the subject at once; other processes notice within a tenth of a second. */
  forget(account: string, subject: string): Promise<void>
}

/** A rule with its windows. */
interface Lane {
  readonly rule: Rule
  readonly windows: Windows
  readonly takes: Takes
  readonly known: KnownWindows
}

/**
 * Limits tries by what they are made with. The same card under a fresh key is the same subject, so a new key does not get
 * around it. A refused try takes nothing: where a longer window refuses, what was taken of the shorter ones is given
 * back, and a block ends when its window does, however often it was tried meanwhile. A process that dies in between
 * leaves a try counted.
 *
 * @example
 * const cards = velocityLimit({ pool, name: 'card', secret, rules: [{ points: 3, perMs: 60_000 }, { points: 10, perMs: 86_400_000 }] })
 * const verdict = await cards.take('acct_1', paymentMethod)
 */
export function velocityLimit(options: VelocityLimitOptions): VelocityLimit {
  refuseUnknown('velocityLimit()', options, NAMES)
  const resolved = resolveOptions(options)
  const { name, onError } = resolved
  const guard = new Guard(resolved)
  const lanes = lanesOf(options.rules, resolved)
  const keyOf = digester(options.secret, name)
  const attempts = new WeakMap<Verdict, Attempt>()
  return {
    start: () => guard.start(),
    async take(account, subject, points = 1) {
      const key = keyOf(account, subject)
      for (const { rule } of lanes) whole('points', points, rule.points)
      const attempt = new Attempt(name, key, points)
      const verdict = await guard.ask(key, () => attempt.take(lanes))
      if (verdict !== null) {
        attempts.set(verdict, attempt)
        return verdict
      }
      if (onError === 'allow') return blindVerdict(name, lanes, key, points)
      attempt.abandon()
      return blindRefusal(name, lanes[0]!.rule)
    },
    async giveBack(taken) {
      await attempts.get(taken)?.giveBack()
    },
    async peek(account, subject) {
      const key = keyOf(account, subject)
      const seen = guard.demand(() => Promise.all(lanes.map(({ windows }) => windows.get(key))))
      return (await seen).map((found, index) => windowOf(name, lanes[index]!.rule, found))
    },
    async forget(account, subject) {
      const key = keyOf(account, subject)
      await guard.demand(() => Promise.all(lanes.map(({ windows }) => windows.delete(key))))
      for (const { takes, known } of lanes) {
        takes.ask(key)
        known.forget(key)
      }
    },
  }
}

/** One try: what it has taken so far, so that it can be given back. */
class Attempt {
  readonly #name: string
  readonly #key: string
  readonly #points: number
  readonly #taken: { readonly lane: Lane; readonly take: Take }[] = []
  #abandoned = false

  constructor(name: string, key: string, points: number) {
    this.#name = name
    this.#key = key
    this.#points = points
  }

  /** The verdict of the window that refuses, or else of the one with the least left. */
  async take(lanes: readonly Lane[]): Promise<Verdict> {
    // Where one is known to refuse, nothing has to be taken of the others first.
    for (const { rule, takes } of lanes) {
      const refused = takes.refused(this.#key, this.#points)
      if (refused !== null) return verdictOf(this.#name, rule, refused)
    }
    for (const lane of lanes) {
      const take = await lane.takes.take(this.#key, this.#points)
      lane.known.note(this.#key, take)
      if (take.granted) this.#taken.push({ lane, take })
      if (this.#abandoned || !take.granted) {
        await this.giveBack()
        return verdictOf(this.#name, lane.rule, { ...take, granted: false })
      }
    }
    const [least] = this.#taken.toSorted((a, b) => a.take.left - b.take.left)
    return verdictOf(this.#name, least!.lane.rule, least!.take)
  }

  /** No request waits any more, and this one was refused: it is not to count, as far as that can still be had. */
  abandon(): void {
    this.#abandoned = true
    void this.giveBack()
  }

  /** Best effort: what cannot be given back stays counted until its window ends. */
  async giveBack(): Promise<void> {
    const given = this.#taken.splice(0).map(async ({ lane, take }) => {
      await lane.windows.giveBack(this.#key, this.#points, take.window).catch(() => {})
      lane.takes.ask(this.#key)
    })
    await Promise.all(given)
  }
}

/** The shortest first: it is the one that refuses a burst, and then nothing has to be given back. */
function lanesOf(rules: readonly Rule[], resolved: ReturnType<typeof resolveOptions>): readonly Lane[] {
  if (!Array.isArray(rules) || rules.length === 0 || rules.length > LIMITS.limitRulesMax) {
    refuse(`rules is a list of one to ${LIMITS.limitRulesMax} rules.`)
  }
  for (const rule of rules) refuseUnknown('A rule of velocityLimit()', rule, RULE_NAMES)
  const checked = rules.map(checkRule).sort((a, b) => a.perMs - b.perMs)
  if (new Set(checked.map(({ perMs }) => perMs)).size < checked.length) {
    refuse('two rules have the same perMs; the smaller one is enough.')
  }
  const { pool, schema, named, name, waitMaxMs } = resolved
  return checked.map((rule) => {
    const prefix = `${name}/${rule.perMs}`
    const windows = new Windows({ pool, schema, table: VELOCITIES, prefix, named, waitMaxMs, ...rule })
    return { rule, windows, takes: new Takes(windows, waitMaxMs), known: new KnownWindows(rule) }
  })
}

/** A card's token or number is in no table, and no two accounts, limiters or subjects have the same digest. */
function digester(secret: string | Uint8Array, name: string) {
  const bytes = typeof secret === 'string' ? Buffer.from(secret) : secret
  if (!(bytes instanceof Uint8Array) || bytes.length < LIMITS.secretSizeMinBytes) {
    throw new OnlyonceError('secret_invalid')
  }
  // A copy: the caller may wipe his.
  const key = Buffer.from(bytes)
  return (account: string, subject: string): string => {
    const parts = encodeParts('limits', name, checkText('account', account), checkText('subject', subject))
    return createHmac('sha256', key).update(parts).digest('base64url')
  }
}
