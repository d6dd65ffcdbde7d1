import type { Money, Movement } from '../gateway/index.ts'

/** A payment or a refund as our own books have it. */
export interface OwnMovement extends Money {
  readonly account: string
  readonly kind: Movement['kind']
  /** `pay_…` or `ref_…`, as it was told to the processor. */
  readonly id: string
  /** Null where the processor made nothing, or nobody knows. */
  readonly gateway_id: string | null
  /** Taken or given back so far; null as long as nobody knows. */
  readonly moved: number | null
  /** From when on nobody knows, where that is not from its beginning on. */
  readonly unknown_since?: string
  readonly at: string
}

/** Something that the two books do not say alike. */
export type Difference =
  | { readonly difference: 'missing_here'; readonly ours: null; readonly theirs: Movement }
  | { readonly difference: 'missing_there'; readonly ours: OwnMovement; readonly theirs: null }
  | { readonly difference: 'amount_mismatch'; readonly ours: OwnMovement; readonly theirs: Movement }
  | { readonly difference: 'aged_unknown'; readonly ours: OwnMovement; readonly theirs: Movement | null }

type Of<D extends Difference['difference']> = Extract<Difference, { difference: D }>

export interface Comparison {
  /** How many are the same in both. */
  readonly matched: number
  /** The processor moved money that we know nothing of. */
  readonly missing_here: readonly Of<'missing_here'>[]
  /** We think that money was moved of which the processor knows nothing. */
  readonly missing_there: readonly Of<'missing_there'>[]
  readonly amount_mismatch: readonly Of<'amount_mismatch'>[]
  /** Nobody has found out for too long what became of it. */
  readonly aged_unknown: readonly Of<'aged_unknown'>[]
}

export interface ComparedTime {
  /**
   * What is found is told for this time, from its first moment up to, and without, its last: what both have belongs where the
   * processor has it, so that two days next to each other tell nothing twice. Give movements of a while before and behind it
   * too: both sides' clocks differ, and a movement near the edge is in another day there.
   */
  readonly from: Date
  readonly to: Date
  readonly now: Date
  /** From when on what is unknown is worth a word. Until then it is left alone, on both sides. */
  readonly unknownAfterMs?: number
}

/** By then the library's reconciler has looked for a whole day, and parked it. */
const UNKNOWN_AFTER_MS = 24 * 3_600_000

/**
 * Compares two books. What the processor has twice under one of our references is matched once: the other one is missing here, and is
 * the charge that should never have been.
 *
 * @example
 * const { missing_here } = compare(ours, theirs, { from, to, now })
 */
export function compare(
  ours: Iterable<OwnMovement>,
  theirs: Iterable<Movement>,
  time: ComparedTime,
): Comparison {
  const found = {
    matched: 0,
    missing_here: [] as Of<'missing_here'>[],
    missing_there: [] as Of<'missing_there'>[],
    amount_mismatch: [] as Of<'amount_mismatch'>[],
    aged_unknown: [] as Of<'aged_unknown'>[],
  }
  const { pairs, onlyOurs, onlyTheirs } = pair(ours, theirs)
  for (const [own, their] of pairs) {
    if (!isWithin(their.at, time)) continue
    if (own.moved === null) {
      if (isAged(own, time)) found.aged_unknown.push({ difference: 'aged_unknown', ours: own, theirs: their })
    } else if (own.moved !== their.moved || (own.moved > 0 && own.currency !== their.currency)) {
      found.amount_mismatch.push({ difference: 'amount_mismatch', ours: own, theirs: their })
    } else found.matched += 1
  }
  for (const own of onlyOurs) {
    if (!isWithin(own.at, time)) continue
    if (own.moved === null) {
      if (isAged(own, time)) found.aged_unknown.push({ difference: 'aged_unknown', ours: own, theirs: null })
    } else if (own.moved > 0) {
      found.missing_there.push({ difference: 'missing_there', ours: own, theirs: null })
    }
  }
  for (const their of onlyTheirs) {
    // Nothing was moved by what was declined, let go, or is only held.
    if (their.moved > 0 && isWithin(their.at, time)) {
      found.missing_here.push({ difference: 'missing_here', ours: null, theirs: their })
    }
  }
  return found
}

interface Paired {
  readonly pairs: readonly (readonly [OwnMovement, Movement])[]
  readonly onlyOurs: readonly OwnMovement[]
  readonly onlyTheirs: readonly Movement[]
}

/**
 * By the processor's id; then, for what we have without one, by our reference. Never by reference alone: what has another id there
 * is another charge. Of several of ours with one id, only one is paired: the others are missing there. It is the one that the processor
 * was told of, also where that has no id yet and another has taken it.
 */
function pair(ours: Iterable<OwnMovement>, theirs: Iterable<Movement>): Paired {
  const byGatewayId = new Map<string, OwnMovement[]>()
  const byReference = new Map<string, OwnMovement>()
  for (const own of ours) {
    if (own.gateway_id === null) byReference.set(`${own.kind} ${own.id}`, own)
    else {
      const name = `${own.kind} ${own.gateway_id}`
      byGatewayId.set(name, [...(byGatewayId.get(name) ?? []), own])
    }
  }
  const pairs: [OwnMovement, Movement][] = []
  const onlyTheirs: Movement[] = []
  const waiting = new Map<string, Movement>()
  for (const their of unique(theirs)) {
    const reference = `${their.kind} ${their.reference}`
    const own = byReference.has(reference) ? undefined : takeOne(byGatewayId, their)
    if (own !== undefined) pairs.push([own, their])
    else if (!byReference.has(reference)) onlyTheirs.push(their)
    else {
      // Of several the one that moved most is what we look for; the others are declines, or one charge too many.
      const before = waiting.get(reference)
      const better = before === undefined || their.moved > before.moved
      if (better) waiting.set(reference, their)
      if (before !== undefined) onlyTheirs.push(better ? before : their)
    }
  }
  for (const [reference, their] of waiting) pairs.push([take(byReference, reference)!, their])
  return { pairs, onlyOurs: [...[...byGatewayId.values()].flat(), ...byReference.values()], onlyTheirs }
}

/** A list that is read page by page while it grows tells some things twice. The last word counts. */
function unique(theirs: Iterable<Movement>): Iterable<Movement> {
  return new Map(Array.from(theirs, (their) => [`${their.kind} ${their.gateway_id}`, their])).values()
}

/** Of those with the processor's id the one that the processor names, or else the first. The others stay. */
function takeOne(from: Map<string, OwnMovement[]>, their: Movement): OwnMovement | undefined {
  const name = `${their.kind} ${their.gateway_id}`
  const found = from.get(name) ?? []
  const taken = found.find(({ id }) => id === their.reference) ?? found[0]
  const others = found.filter((own) => own !== taken)
  if (others.length > 0) from.set(name, others)
  else from.delete(name)
  return taken
}

function take<T>(from: Map<string, T>, name: string): T | undefined {
  const taken = from.get(name)
  from.delete(name)
  return taken
}

function isWithin(at: string, { from, to }: ComparedTime): boolean {
  const time = Date.parse(at)
  return time >= from.getTime() && time < to.getTime()
}

function isAged(own: OwnMovement, { now, unknownAfterMs = UNKNOWN_AFTER_MS }: ComparedTime): boolean {
  return now.getTime() - Date.parse(own.unknown_since ?? own.at) >= unknownAfterMs
}

/** What several times that follow each other have come to. */
export function mergeComparisons(comparisons: readonly Comparison[]): Comparison {
  return {
    matched: comparisons.reduce((sum, { matched }) => sum + matched, 0),
    missing_here: comparisons.flatMap(({ missing_here: missingHere }) => missingHere),
    missing_there: comparisons.flatMap(({ missing_there: missingThere }) => missingThere),
    amount_mismatch: comparisons.flatMap(({ amount_mismatch: amountMismatch }) => amountMismatch),
    aged_unknown: comparisons.flatMap(({ aged_unknown: agedUnknown }) => agedUnknown),
  }
}

/** All of them, the kinds one after another. */
export function differencesOf(comparison: Comparison): readonly Difference[] {
  const {
    missing_here: missingHere,
    missing_there: missingThere,
    amount_mismatch: amountMismatch,
    aged_unknown: agedUnknown,
  } = comparison
  return [...missingHere, ...missingThere, ...amountMismatch, ...agedUnknown]
}
