import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { expect } from 'vitest'
import { type Onlyonce, OnlyonceError } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'

export const OPERATION = 'transfers.create'

/** What a caller was told about a key: that it took effect, that nothing happened, or that nobody knows. */
export type Told = 'took effect' | 'nothing happened' | 'unknown'

/**
 * Notes what callers are told while the world breaks, and compares it with the rows that are there in the end.
 */
export class Witness {
  readonly told = new Map<string, Told>()
  effects = 0
  readonly #once: Onlyonce<PostgresTx>

  constructor(once: Onlyonce<PostgresTx>) {
    this.#once = once
  }

  /** One protected transaction with a new key and one effect. */
  async call(): Promise<Told> {
    const key = randomUUID()
    const told = await this.tell(key)
    this.told.set(key, told)
    if (told === 'took effect') this.effects += 1
    return told
  }

  async tell(key: string): Promise<Told> {
    try {
      const result = await this.#once.transaction(
        { account: 'acct_1', operation: OPERATION, key, input: { amount: 100 } },
        async (tx) => {
          await tx.query('INSERT INTO effects (key) VALUES ($1)', [key])
          return { key }
        },
      )
      // Nobody else sends this key, so a replay would mean that an effect of ours was not told to us before.
      expect(result).toEqual({ outcome: 'executed', value: { key } })
      return 'took effect'
    } catch (error) {
      if (!(error instanceof OnlyonceError)) throw error
      if (error.code === 'outcome_unknown') return 'unknown'
      expect(['store_unavailable', 'pool_exhausted', 'deadline_exceeded']).toContain(error.code)
      return 'nothing happened'
    }
  }

  /** Every key has the effect that its caller was told, and a record that says the same. */
  async compare(pool: pg.Pool): Promise<Record<Told, number>> {
    const effects = await countBy(pool, 'SELECT key, count(*) AS n FROM effects GROUP BY key')
    const records = await countBy(
      pool,
      `SELECT key, count(*) AS n FROM onlyonce.records WHERE state = 'completed' GROUP BY key`,
    )
    const counted: Record<Told, number> = { 'took effect': 0, 'nothing happened': 0, unknown: 0 }
    const wrong: string[] = []
    for (const [key, told] of this.told) {
      counted[told] += 1
      const effect = effects.get(key) ?? 0
      if (told === 'took effect' && effect !== 1) wrong.push(`${key}: told ${told}, found ${effect} effects`)
      if (told === 'nothing happened' && effect !== 0)
        wrong.push(`${key}: told ${told}, found ${effect} effects`)
      if (effect !== (records.get(key) ?? 0))
        wrong.push(`${key}: ${effect} effects, ${records.get(key) ?? 0} records`)
    }
    expect(wrong).toEqual([])
    expect(effects.size).toBe(records.size)
    return counted
  }
}

async function countBy(pool: pg.Pool, text: string): Promise<Map<string, number>> {
  const { rows } = await pool.query(text)
  return new Map(rows.map(({ key, n }) => [key, Number(n)]))
}
