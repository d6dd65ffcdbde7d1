import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { parsePointer } from './pointer.ts'

/**
 * Which fields of a JSON body or input the fingerprint covers, as JSON Pointers.
 *
 * @example
 * const fields: FingerprintFields = { exclude: ['/meta/trace_id'] }
 */
export interface FingerprintFields {
  /** Only these count. */
  readonly include?: readonly string[]
  /** These do not count; taken away from what is included. */
  readonly exclude?: readonly string[]
}

/**
 * One pointer, taken apart once.
 *
 * @example
 * const pointer: CompiledPointer = { pointer: '/a', below: '/a/', tokens: ['a'] }
 */
export interface CompiledPointer {
  readonly pointer: string
  /** What the pointers of everything below this one start with. */
  readonly below: string
  readonly tokens: readonly string[]
}

/**
 * Fields that have been checked; only `compileFields` makes them.
 *
 * @example
 * const fields: CompiledFields = compileFields({ exclude: ['/meta/trace_id'] })
 */
export interface CompiledFields {
  readonly include: readonly CompiledPointer[] | null
  readonly exclude: readonly CompiledPointer[]
}

const NAMES: OptionNames<FingerprintFields> = { include: true, exclude: true }

/**
 * Checks and compiles fields once, for use with every request.
 *
 * @example
 * const fields = compileFields({ exclude: ['/meta/trace_id'] })
 * prepareRequest(request, fields)
 */
export function compileFields(fields: FingerprintFields): CompiledFields {
  refuseUnknown('fingerprint', fields, NAMES)
  const include = fields.include === undefined ? null : compileAll(fields.include, 'include')
  const exclude = fields.exclude === undefined ? [] : compileAll(fields.exclude, 'exclude')
  // With nothing left to compare every request would pass for a retry of the first.
  if (include?.length === 0) refuse('include is empty, so nothing would count.')
  if (exclude.some(({ pointer }) => pointer === ''))
    refuse('exclude names the whole, so nothing would count.')
  return { include, exclude }
}

/**
 * Whether a pointer is one of these or lies below one.
 *
 * @example
 * covers(compileFields({ exclude: ['/a'] }).exclude, '/a/b') // true
 */
export function covers(pointers: readonly CompiledPointer[], pointer: string): boolean {
  return pointers.some((one) => one.pointer === pointer || pointer.startsWith(one.below))
}

function compileAll(pointers: readonly string[], what: string): CompiledPointer[] {
  if (!Array.isArray(pointers)) refuse(`${what} is a list of JSON Pointers.`)
  if (pointers.length > LIMITS.pointersMax) refuse(`${what} has more than ${LIMITS.pointersMax} pointers.`)
  const compiled: CompiledPointer[] = []
  // Sorted, a pointer comes before those below it: what is covered already adds nothing.
  const parsed = pointers.map((pointer) => ({ tokens: parsePointer(pointer), pointer, below: `${pointer}/` }))
  for (const one of parsed.sort((a, b) => (a.pointer < b.pointer ? -1 : 1))) {
    if (!covers(compiled, one.pointer)) compiled.push(one)
  }
  return compiled
}

function refuse(detail: string): never {
  throw new OnlyonceError('pointer_invalid', { detail })
}
