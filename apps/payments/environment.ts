import type { Secret } from 'onlyonce'
import { LIMITS } from 'onlyonce/limits'
import type { Rule } from 'onlyonce/rate-limits'

/** What is wrong with the configuration: all of it, and by name. */
export class ConfigError extends Error {
  constructor(problems: readonly string[]) {
    super(`The configuration is wrong.\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
    this.name = 'ConfigError'
  }
}

export type Env = Readonly<Record<string, string | undefined>>

/** Takes variables one by one and notes what is wrong with them. It never repeats a value: it may be a secret. */
export class Reader {
  readonly #env: Env
  readonly #problems = new Set<string>()

  constructor(env: Env) {
    this.#env = env
  }

  wrong(name: string, what: string): void {
    this.#problems.add(`${name} ${what}`)
  }

  finish(): void {
    if (this.#problems.size > 0) throw new ConfigError([...this.#problems])
  }

  /**
   * An empty variable is what a template leaves of a missing one. It is refused: taken for none, an `ENCRYPTION_KEY` that got lost on
   * its way would store everything in the clear, and a `DATABASE_URL` would start another database.
   */
  text(name: string): string | null {
    const text = this.#env[name]
    if (text === undefined) return null
    if (text.trim() !== '') return text
    this.wrong(name, 'is set, and empty. Give it a value, or do not set it.')
    return null
  }

  whole(name: string, min: number, max: number): number | null {
    const text = this.text(name)
    if (text === null) return null
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= min && value <= max)) this.wrong(name, `is a whole number from ${min} to ${max}.`)
    return value
  }

  flag(name: string): boolean | null {
    const text = this.text(name)
    if (text === null) return null
    if (!['1', 'true', '0', 'false'].includes(text)) this.wrong(name, 'is 1 or true, 0 or false.')
    return text === '1' || text === 'true'
  }

  oneOf<T extends string>(name: string, allowed: readonly T[]): T | null {
    const text = this.text(name)
    const found = allowed.find((value) => value === text)
    if (text !== null && found === undefined) this.wrong(name, `is one of ${allowed.join(', ')}.`)
    return found ?? null
  }

  /** `30/60,300/86400`: thirty in a minute, and three hundred in a day. */
  rules(name: string): readonly Rule[] | null {
    const text = this.text(name)
    if (text === null) return null
    const rules = text.split(',').map(readRule)
    const sound = rules.filter((rule) => rule !== null)
    if (sound.length < rules.length || rules.length > LIMITS.limitRulesMax) {
      this.wrong(name, 'is a list of points/seconds, such as 30/60,300/86400.')
    }
    return sound
  }

  /** `60,300,3600`. */
  seconds(name: string): readonly number[] | null {
    const text = this.text(name)
    if (text === null) return null
    const fits = /^\d{1,6}(?:\.\d{1,3})?(?:,\d{1,6}(?:\.\d{1,3})?)*$/.test(text)
    if (!fits) this.wrong(name, 'is a list of seconds, such as 60,300,3600.')
    return fits ? text.split(',').map((part) => Number(part) * 1_000) : null
  }

  url(name: string, protocols: readonly string[]): string | null {
    const text = this.text(name)
    if (text === null) return null
    if (!URL.canParse(text) || !protocols.includes(new URL(text).protocol)) {
      this.wrong(name, `is an address that begins with ${protocols.join('// or ')}//.`)
    }
    return text
  }

  /** A secret, or a ring of them: `{"current":"b","keys":{"a":"…","b":"…"}}`. */
  secret(name: string): Secret | null {
    const text = this.text(name)
    if (text === null) return null
    const ring = text.startsWith('{') ? parseRing(text) : { current: 'default', keys: { default: text } }
    if (ring === null || !Object.hasOwn(ring.keys, ring.current)) {
      this.wrong(name, 'begins with { and is no ring: {"current":"b","keys":{"a":"…","b":"…"}}.')
      return null
    }
    const short = Object.values(ring.keys).some((key) => Buffer.byteLength(key) < LIMITS.secretSizeMinBytes)
    if (short) this.wrong(name, `has at least ${LIMITS.secretSizeMinBytes} bytes.`)
    return text.startsWith('{') ? ring : text
  }
}

function parseRing(text: string): { current: string; keys: Record<string, string> } | null {
  try {
    const { current, keys } = JSON.parse(text)
    const values = Object.values(keys)
    if (typeof current === 'string' && values.every((value) => typeof value === 'string')) {
      return { current, keys }
    }
  } catch {}
  return null
}

function readRule(text: string): Rule | null {
  const [, points, seconds] = /^(\d{1,9})\/(\d{1,9})$/.exec(text) ?? []
  const rule = { points: Number(points), perMs: Number(seconds) * 1_000 }
  const sound =
    rule.points >= 1 &&
    rule.points <= LIMITS.limitPointsMax &&
    rule.perMs >= 1 &&
    rule.perMs <= LIMITS.limitWindowMaxMs
  return sound ? rule : null
}
