import { invalidRequest } from './http/failure.ts'
import { FAULTS, type FaultName, type FaultRule, TARGETS, type Target, type WebhookFaults } from './wire.ts'

const RULES_MAX = 10_000
const WEEK_MS = 7 * 24 * 60 * 60 * 1_000
/** What a fault lasts when nobody says so. */
const MS: Partial<Record<FaultName, number>> = {
  delay_before: 1_000,
  delay_after: 1_000,
  lag: 60_000,
  webhook_late: WEEK_MS,
}

/** A request, as far as rules look at it. */
export interface Subject {
  readonly target: Target
  readonly key: string | null
  readonly metadata: Readonly<Record<string, string>>
  /** How often its key has come, this time included. */
  readonly nth: number
  /** What it asks for itself. */
  readonly header: string | undefined
}

/** The faults that one request meets, each with how long it lasts. */
export type Plan = ReadonlyMap<FaultName, number>
const NOTHING: Plan = new Map()

/** The faults that the gateway was told to show, in the order in which it was told. */
export class Faults {
  #rules: { readonly rule: FaultRule; left: number }[] = []
  readonly #chance: () => number

  constructor(seed: number) {
    this.#chance = chanceFrom(seed)
  }

  get rules(): FaultRule[] {
    return this.#rules.map(({ rule, left }) => (Number.isFinite(left) ? { ...rule, times: left } : rule))
  }

  add(rule: FaultRule): void {
    if (this.#rules.length >= RULES_MAX) throw invalidRequest('There are too many rules.')
    const { times = rule.rate === undefined ? 1 : Number.POSITIVE_INFINITY } = rule
    this.#rules.push({ rule, left: times })
  }

  clear(): void {
    this.#rules = []
  }

  /** Decides what a request meets: of each fault the first rule that is meant for it, which is used up by that. */
  plan(subject: Subject): Plan {
    const asked = subject.metadata.sandbox_fault
    // The usual case, and the one that benchmarks measure.
    if (this.#rules.length === 0 && asked === undefined && subject.header === undefined) return NOTHING
    const plan = new Map<FaultName, number>()
    for (const kept of [...this.#rules]) {
      const { rule } = kept
      if (plan.has(rule.fault) || !isMeant(rule, subject)) continue
      if (rule.rate !== undefined && this.#chance() >= rule.rate) continue
      plan.set(rule.fault, rule.ms ?? MS[rule.fault] ?? 0)
      kept.left -= 1
      if (kept.left <= 0) this.#rules.splice(this.#rules.indexOf(kept), 1)
    }
    for (const { fault, ms } of parseFaults(subject.header ?? '')) plan.set(fault, ms)
    for (const { fault, ms, times } of parseFaults(asked ?? '')) {
      // A retry brings the same metadata: it would never get through.
      if (subject.nth <= times) plan.set(fault, ms)
    }
    return plan
  }
}

export function webhookFaults(plan: Plan): WebhookFaults | null {
  if (plan.size === 0) return null
  const faults: WebhookFaults = {
    ...(plan.has('webhook_lost') && { lost: true }),
    ...(plan.has('webhook_doubled') && { doubled: true }),
    ...(plan.has('webhook_reordered') && { reordered: true }),
    ...(plan.has('webhook_late') && { late_ms: plan.get('webhook_late')! }),
  }
  return Object.keys(faults).length === 0 ? null : faults
}

/** Reads `lose_after`, `delay_after:500`, `lose_after*2`, or several of them with commas between. */
function parseFaults(text: string): { fault: FaultName; ms: number; times: number }[] {
  if (text === '') return []
  return text.split(',').map((part) => {
    const found = /^\s*([a-z_]+)(?::(\d{1,12}))?(?:\*(\d{1,6}))?\s*$/.exec(part)
    const fault = FAULTS.find((name) => name === found?.[1])
    if (found === null || fault === undefined) throw invalidRequest(`Unknown fault: ${part.slice(0, 100)}`)
    return { fault, ms: Number(found[2] ?? MS[fault] ?? 0), times: Number(found[3] ?? 1) }
  })
}

/** A rule from outside, checked: a rule with a typing error would be a test that tests nothing. */
export function readRule(body: unknown): FaultRule {
  const wrong = (what: string) => invalidRequest(`The rule is not sound: ${what}.`)
  if (typeof body !== 'object' || body === null) throw wrong('it is no object')
  const rule = body as Partial<Record<string, unknown>>
  const isCount = (value: unknown) =>
    value === undefined || (Number.isSafeInteger(value) && Number(value) >= 0)
  const stray = Object.keys(rule).find((name) => !RULE_MEMBERS.includes(name))
  if (stray !== undefined) throw wrong(`${stray} is unknown`)
  if (!FAULTS.some((name) => name === rule.fault)) throw wrong('fault is unknown')
  if (rule.on !== undefined && !TARGETS.some((name) => name === rule.on)) throw wrong('on is unknown')
  if (!isCount(rule.ms)) throw wrong('ms is no count')
  if (!isCount(rule.times) || rule.times === 0) throw wrong('times is no count')
  if (rule.key !== undefined && typeof rule.key !== 'string') throw wrong('key is no text')
  const { rate, metadata } = rule
  if (rate !== undefined && !(typeof rate === 'number' && rate >= 0 && rate <= 1)) {
    throw wrong('rate is not between 0 and 1')
  }
  const { name, value } = (metadata ?? {}) as Record<string, unknown>
  if (metadata !== undefined && (typeof name !== 'string' || typeof value !== 'string')) {
    throw wrong('metadata is not { name, value }')
  }
  return rule as unknown as FaultRule
}
const RULE_MEMBERS = ['fault', 'ms', 'on', 'key', 'metadata', 'times', 'rate']

function isMeant(rule: FaultRule, { target, key, metadata }: Subject): boolean {
  return (
    (rule.on === undefined ? target !== 'lookup' : rule.on === target) &&
    (rule.key === undefined || rule.key === key) &&
    (rule.metadata === undefined || metadata[rule.metadata.name] === rule.metadata.value)
  )
}

/** Mulberry32: small, and the same on every machine. */
function chanceFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
