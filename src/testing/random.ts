import { OnlyonceError } from '../core/errors.ts'

/** A seeded source of choices: the same seed makes the same choices in the same order. */
export interface Random {
  /** The seed it was made from, to print beside a failure. */
  readonly seed: number
  /** A number from 0 up to, but not including, 1. */
  next(): number
  /** A whole number from 0 up to, but not including, `max`. */
  integer(max: number): number
  /** One element of a list that is not empty. */
  pick<T>(list: readonly T[]): T
  /** True with this probability: never at 0, always at 1. */
  chance(probability: number): boolean
  /**
   * Another source that depends on the seed and on `stream` alone, not on what was drawn before. All that
   * runs concurrently takes a stream of its own: then the order of events does not change its choices.
   */
  fork(stream: number): Random
}

/**
 * Makes a seeded random source (mulberry32: 32 bits of state, good enough to choose faults by, useless for
 * secrets).
 *
 * @example
 * const chooser = random(42)
 * chooser.pick(['before', 'after'])
 * chooser.chance(0.1)
 */
export function random(seed: number): Random {
  if (!Number.isSafeInteger(seed)) {
    throw new OnlyonceError('option_invalid', { detail: 'The seed of random() is a whole number.' })
  }
  let state = mix(seed)

  function next(): number {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), 1 | state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }

  function integer(max: number): number {
    if (!Number.isSafeInteger(max) || max < 1) {
      throw new OnlyonceError('option_invalid', {
        detail: 'integer(max) needs a whole number of at least 1.',
      })
    }
    return Math.floor(next() * max)
  }

  function pick<T>(list: readonly T[]): T {
    return list[integer(list.length)] as T
  }

  return {
    seed,
    next,
    integer,
    pick,
    chance: (probability) => next() < probability,
    fork: (stream) => random(mix(mix(seed) + mix(stream + 1))),
  }
}

/** Spreads neighbouring seeds (1, 2, 3 …) over all 32 bits; their sequences would start alike otherwise. */
function mix(seed: number): number {
  // The upper half counts too, so that seeds beyond 2^32, such as Date.now(), do not collide.
  let bits = (seed | 0) ^ Math.imul(Math.floor(seed / 2 ** 32) | 0, 0x9e3779b1)
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) | 0
}
