import type { Pool } from 'pg'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import type { OptionNames } from '../core/options.ts'
import { hearPool } from '../store/postgres/hear.ts'
import { checkSchema } from '../store/postgres/options.ts'

/** What every limiter over PostgreSQL is given. */
export interface LimiterOptions {
  readonly pool: Pool
  /** Which limit it is: in the rows, and in `RateLimit-Policy`. Limiters with the same name share their counts. */
  readonly name: string
  /**
   * Where its tables are.
   *
   * @default 'onlyonce'
   */
  readonly schema?: string
  /**
   * `transaction` behind a pooler that does not carry named statements.
   *
   * @default 'none'
   */
  readonly pooler?: 'none' | 'transaction'
  /**
   * What a request hears when the store cannot tell.
   *
   * @default 'allow'
   */
  readonly onError?: 'allow' | 'refuse'
  /**
   * Told what went wrong, once for each try; without it no operator learns that nothing is limited.
   *
   * @default none
   */
  readonly onTrouble?: (error: unknown) => void
  /**
   * How long a request waits for the store.
   *
   * @default 250
   */
  readonly waitMaxMs?: number
}

export const LIMITER_NAMES: OptionNames<LimiterOptions> = {
  pool: true,
  name: true,
  schema: true,
  pooler: true,
  onError: true,
  onTrouble: true,
  waitMaxMs: true,
}

/** A number of points in a length of time. */
export interface Rule {
  readonly points: number
  readonly perMs: number
}

export const RULE_NAMES: OptionNames<Rule> = { points: true, perMs: true }

export type ResolvedOptions = Required<Omit<LimiterOptions, 'onTrouble' | 'pooler'>> & {
  readonly onTrouble: (error: unknown) => void
  readonly named: boolean
}

export function resolveOptions(options: LimiterOptions): ResolvedOptions {
  const { pool, name, schema = 'onlyonce', pooler = 'none', onError = 'allow' } = options
  const { onTrouble = () => {}, waitMaxMs = LIMITS.limitWaitMaxMs } = options
  if (typeof pool?.query !== 'function') refuse('a limiter needs a pool of pg.')
  hearPool(pool)
  if (typeof name !== 'string' || !/^[A-Za-z0-9_.-]+$/.test(name)) {
    refuse('the name of a limiter is made of letters, digits, "_", "." and "-".')
  }
  if (name.length > LIMITS.limitNameLengthMax) {
    refuse(`the name of a limiter has at most ${LIMITS.limitNameLengthMax} characters.`)
  }
  if (onError !== 'allow' && onError !== 'refuse') refuse('onError is allow or refuse.')
  if (pooler !== 'none' && pooler !== 'transaction') refuse('pooler is none or transaction.')
  if (typeof onTrouble !== 'function') refuse('onTrouble is a function.')
  whole('waitMaxMs', waitMaxMs, LIMITS.timerMaxMs)
  const named = pooler === 'none'
  return { pool, name, schema: checkSchema(schema), named, onError, onTrouble, waitMaxMs }
}

export function checkRule({ points, perMs }: Rule): Rule {
  return {
    points: whole('points', points, LIMITS.limitPointsMax),
    perMs: whole('perMs', perMs, LIMITS.limitWindowMaxMs),
  }
}

export function whole(name: string, value: number, max: number): number {
  if (Number.isSafeInteger(value) && value >= 1 && value <= max) return value
  return refuse(`${name} is a whole number from 1 to ${max}.`)
}

/** What is counted needs a subject that it is counted for. */
export function checkText(name: string, value: string): string {
  if (typeof value === 'string' && value !== '') return value
  return refuse(`${name} is a text that is not empty.`)
}

export function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
