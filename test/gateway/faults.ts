import type { Fault, Scope, Target } from './wire.ts'

type FaultName = Fault['fault']

/** The faults that the gateway was told to show, in the order in which it was told. */
export class Faults {
  #rules: Rule[] = []

  add(rule: Fault & Scope): void {
    const { times = rule.rate === undefined ? 1 : Number.POSITIVE_INFINITY } = rule
    this.#rules.push({ rule, left: times })
  }

  clear(): void {
    this.#rules = []
  }

  /** The first fault of these kinds that is meant for a request, if any. It is used up by that. */
  take<Name extends FaultName>(
    names: readonly Name[],
    target: Target,
    key: string,
    at?: string,
  ): FaultOf<Name> | null {
    // The usual case, and the one that benchmarks measure.
    if (this.#rules.length === 0) return null
    const isMeant = ({ rule }: Rule) =>
      (names as readonly string[]).includes(rule.fault) &&
      (at === undefined || ('at' in rule && rule.at === at)) &&
      targetsOf(rule).includes(target) &&
      (rule.key === undefined || rule.key === key) &&
      (rule.rate === undefined || Math.random() < rule.rate)
    const found = this.#rules.find(isMeant)
    if (found === undefined) return null
    found.left -= 1
    if (found.left <= 0) this.#rules.splice(this.#rules.indexOf(found), 1)
    return found.rule as FaultOf<Name>
  }
}

type FaultOf<Name extends FaultName> = Extract<Fault, { readonly fault: Name }>

interface Rule {
  readonly rule: Fault & Scope
  left: number
}

/** What a fault is about when nobody says so. */
function targetsOf({ fault, on }: Fault & Scope): readonly Target[] {
  if (on !== undefined) return [on]
  if (fault === 'pending') return ['lookup']
  if (fault === 'double') return ['webhook']
  return ['charge', 'refund']
}
