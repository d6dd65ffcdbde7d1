import type { Pool } from 'pg'
import { OnlyonceError } from '../errors.ts'
import { LIMITS } from '../limits.ts'
import type { OptionNames } from '../options.ts'
import { hearPool } from '../store/postgres/hear.ts'
import { checkSchema } from '../store/postgres/options.ts'

/** What every limiter over PostgreSQL is given. */
export interface LimiterOptions {
  readonly pool: Pool
  /** Which limit it is: in the rows, and in `RateLimit-Policy`. Limiters with the same name share their counts. */
  readonly name: string
  /** Where its tables are. Default: `onlyonce`. */
  readonly schema?: string
  /** `transaction` behind a pooler that does not carry named statements. */
  readonly pooler?: 'none' | 'transaction'
  /** What a request hears when the store cannot tell. Default: `allow`: a limiter must not take an API down. */
  readonly on_error?: 'allow' | 'refuse'
  /** Told what went wrong, once for each try; without it no operator learns that nothing is limited. */
  readonly on_trouble?: (error: unknown) => void
  /** How long a request waits for the store. */
  readonly wait_max_ms?: number
}

export const LIMITER_NAMES: OptionNames<LimiterOptions> = {
  pool: true,
  name: true,
  schema: true,
  pooler: true,
  on_error: true,
  on_trouble: true,
  wait_max_ms: true,
}

/** A number of points in a length of time. */
export interface Rule {
  readonly points: number
  readonly per_ms: number
}

export const RULE_NAMES: OptionNames<Rule> = { points: true, per_ms: true }

export type ResolvedOptions = Required<Omit<LimiterOptions, 'on_trouble' | 'pooler'>> & {
  readonly on_trouble: (error: unknown) => void
  readonly named: boolean
}

export function resolveOptions(options: LimiterOptions): ResolvedOptions {
  const { pool, name, schema = 'onlyonce', pooler = 'none', on_error = 'allow' } = options
  const { on_trouble = () => {}, wait_max_ms = LIMITS.limit_wait_max_ms } = options
  if (typeof pool?.query !== 'function') refuse('a limiter needs a pool of pg.')
  hearPool(pool)
  if (typeof name !== 'string' || !/^[A-Za-z0-9_.-]+$/.test(name)) {
    refuse('the name of a limiter is made of letters, digits, "_", "." and "-".')
  }
  if (name.length > LIMITS.limit_name_length_max) {
    refuse(`the name of a limiter has at most ${LIMITS.limit_name_length_max} characters.`)
  }
  if (on_error !== 'allow' && on_error !== 'refuse') refuse('on_error is allow or refuse.')
  if (pooler !== 'none' && pooler !== 'transaction') refuse('pooler is none or transaction.')
  if (typeof on_trouble !== 'function') refuse('on_trouble is a function.')
  whole('wait_max_ms', wait_max_ms, LIMITS.timer_max_ms)
  const named = pooler === 'none'
  return { pool, name, schema: checkSchema(schema), named, on_error, on_trouble, wait_max_ms }
}

export function checkRule({ points, per_ms }: Rule): Rule {
  return {
    points: whole('points', points, LIMITS.limit_points_max),
    per_ms: whole('per_ms', per_ms, LIMITS.limit_window_max_ms),
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
