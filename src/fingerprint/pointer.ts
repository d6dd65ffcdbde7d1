import { OnlyonceError } from '../core/errors.ts'

/**
 * The JSON Pointer (RFC 6901) of a path.
 *
 * @example
 * formatPointer(['items', 0, 'a/b']) // '/items/0/a~1b'
 */
export function formatPointer(path: readonly (string | number)[], length = path.length): string {
  let pointer = ''
  for (let i = 0; i < length; i++) {
    const token = String(path[i])
    pointer += `/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`
  }
  return pointer
}

/**
 * The reference tokens of a JSON Pointer.
 *
 * @example
 * parsePointer('/items/0/a~1b') // ['items', '0', 'a/b']
 */
export function parsePointer(pointer: unknown): string[] {
  if (typeof pointer !== 'string')
    throw new OnlyonceError('pointer_invalid', { detail: 'It is not a string.' })
  if (pointer === '') return []
  if (!pointer.startsWith('/')) refuse(pointer, 'starts with no /')
  if (/~(?![01])/.test(pointer)) refuse(pointer, 'holds a ~ that is neither ~0 nor ~1')
  // ~1 first: ~01 stands for the two characters ~1.
  return pointer
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/**
 * The index that a reference token names in an array, or -1. Leading zeros and `-` name no element.
 *
 * @example
 * arrayIndex('01') // -1
 */
export function arrayIndex(token: string): number {
  return /^(?:0|[1-9]\d{0,15})$/.test(token) ? Number(token) : -1
}

function refuse(pointer: string, problem: string): never {
  throw new OnlyonceError('pointer_invalid', { detail: `${JSON.stringify(pointer)} ${problem}.` })
}
