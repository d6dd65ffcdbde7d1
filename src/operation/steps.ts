import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { checkName } from '../key/scope.ts'
import { encodeValue } from '../record/value.ts'
import type { Points } from '../store/operations.ts'

export type StepKind = 'atomic' | 'foreign' | 'undoing' | 'undo_atomic' | 'undo_foreign'

/** Stands in the place of a result that an operator has discarded. */
const DISCARDED = 'discarded'

/** A step with its result, as JSON; an empty text stands for undefined. */
export interface Entry {
  readonly name: string
  readonly kind: StepKind
  readonly text: string
}

/**
 * What an operation has done, in order: steps that are durable, and behind them results of calls that become so with
 * the next commit. A function that is resumed walks past them from the start, and has to ask for the same ones.
 */
export class Steps {
  readonly #entries: Entry[]
  /** Forward steps that were there when the attempt began. */
  readonly #forward: number
  #position = 0
  #at: string | null = null
  readonly #given: number
  readonly #discarded: boolean
  #durable: number
  readonly #names = new Set<string>()

  constructor(entries: readonly Entry[], discarded = false) {
    this.#entries = [...entries]
    this.#discarded = discarded
    this.#given = entries.length
    this.#durable = entries.length
    const undoAt = entries.findIndex(({ kind }) => kind === 'undoing')
    this.#forward = undoAt < 0 ? entries.length : undoAt
  }

  static read(bytes: Buffer | null): Steps {
    if (bytes === null) return new Steps([])
    const stored = JSON.parse(bytes.toString('utf8')) as [string, StepKind | typeof DISCARDED, unknown?][]
    const kept = stored.filter((entry): entry is [string, StepKind, unknown?] => entry[1] !== DISCARDED)
    return new Steps(
      kept.map(([name, kind, ...result]) => ({
        name,
        kind,
        text: result.length === 0 ? '' : JSON.stringify(result[0]),
      })),
      kept.length < stored.length,
    )
  }

  /** The step that the function, or the undoing, has come to; null before the first. */
  get at(): string | null {
    return this.#at
  }

  set at(name: string) {
    this.#at = name
  }

  /** All that is there, in order. */
  get entries(): readonly Entry[] {
    return this.#entries
  }

  get count(): number {
    return this.#entries.length
  }

  get last(): string {
    return this.#entries.at(-1)?.name ?? ''
  }

  /** Whether results of calls wait for a commit. */
  get pending(): boolean {
    return this.#durable < this.#entries.length
  }

  /** Nothing was added yet: an earlier attempt may have gone on from here, and made the very call that comes next. */
  get untouched(): boolean {
    return this.#entries.length === this.#given
  }

  /**
   * An operator has discarded the result behind the last entry, and only the call of that step was added since. An owner may have gone on with
   * what was discarded, and made the call that comes next.
   */
  get overtaken(): boolean {
    return this.#discarded && this.#entries.length === this.#given + 1
  }

  /** Whether anything was done outside of the database. */
  get foreign(): boolean {
    return this.#entries.some(({ kind }) => kind === 'foreign' || kind === 'undo_foreign')
  }

  /** What stands for the outcome once everything is undone; null while the operation goes forward. */
  get undoing(): Entry | null {
    return this.#entries.find(({ kind }) => kind === 'undoing') ?? null
  }

  /** Steps that are durable and that the function has not asked for. */
  get unvisited(): string | null {
    return this.#position < this.#forward ? this.#entries[this.#position]!.name : null
  }

  /** A name stands for one step, forward or undo: results are found by it, and keys of calls are derived from it. */
  reserve(name: string): void {
    checkName(name, 'option_invalid')
    // Asked before a step runs, undos included: what has happened must find a place.
    if (this.#names.size >= LIMITS.stepsMax) {
      throw new OnlyonceError('option_invalid', {
        detail: `An operation has at most ${LIMITS.stepsMax} steps.`,
      })
    }
    if (this.#names.has(name)) {
      throw new OnlyonceError('option_invalid', { detail: `Two steps are called ${name}.` })
    }
    this.#names.add(name)
  }

  /** What is durable of the step that the function asks for next, or null where it is new. */
  enter(name: string, kind: StepKind): Entry | null {
    this.reserve(name)
    this.#at = name
    if (this.#position >= this.#forward) return null
    const entry = this.#entries[this.#position]!
    if (entry.name !== name || entry.kind !== kind) {
      throw new OnlyonceError('operation_changed', {
        detail: `The step ${entry.name} (${entry.kind}) is durable, and the code asks for ${name} (${kind}) in its place.`,
      })
    }
    this.#position += 1
    return entry
  }

  /** The undos that are done, in order. The entry that begins the undoing has a name too, and is none of them. */
  get undone(): readonly Entry[] {
    return this.#entries.slice(this.#entries.findIndex(({ kind }) => kind === 'undoing') + 1)
  }

  add(entry: Entry): void {
    this.#entries.push(entry)
  }

  committed(): void {
    this.#durable = this.#entries.length
  }

  /**
   * All but the last step, and that step itself. Its place is marked: a version that does not know the mark finds another step there, and does not
   * go on. The next commit of an owner removes the mark.
   */
  withoutLast(): { readonly points: Points; readonly discarded: Entry } {
    const discarded = this.#entries.at(-1)!
    const kept = this.#entries.slice(0, -1)
    const mark = JSON.stringify([discarded.name, DISCARDED])
    const bytes = Buffer.from(`[${[...kept.map(entryText), mark].join(',')}]`, 'utf8')
    const last = kept.at(-1)?.name ?? ''
    return { points: { count: kept.length, last, progress: { bytes, sealedBy: null } }, discarded }
  }

  /** What a commit makes durable: all that is here, and one more. */
  points(more: readonly Entry[] = []): Points {
    const entries = [...this.#entries, ...more]
    const bytes = Buffer.from(`[${entries.map(entryText).join(',')}]`, 'utf8')
    if (bytes.length > LIMITS.progressMaxBytes) {
      throw new OnlyonceError('value_too_large', {
        detail: 'The results of all steps together are too large.',
      })
    }
    return { count: entries.length, last: entries.at(-1)!.name, progress: { bytes, sealedBy: null } }
  }
}

/** The result of a step, as it is stored. */
export function entryOf(name: string, kind: StepKind, value: unknown): Entry {
  const text = encodeValue(value).body!.toString('utf8')
  const sizeBytes = Buffer.byteLength(text)
  if (sizeBytes > LIMITS.stepResultMaxBytes) {
    throw new OnlyonceError('value_too_large', {
      detail: `The result of step ${name} has ${sizeBytes} bytes; the limit is ${LIMITS.stepResultMaxBytes}.`,
    })
  }
  return { name, kind, text }
}

/** A new copy each time: what the function does to one result does not change what is stored. */
export function resultOf({ text }: Entry): unknown {
  return text === '' ? undefined : JSON.parse(text)
}

function entryText({ name, kind, text }: Entry): string {
  return `[${JSON.stringify(name)},"${kind}"${text === '' ? '' : `,${text}`}]`
}
