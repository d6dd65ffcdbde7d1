import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/setup/database.ts'
import { LIMITS } from '../../core/limits.ts'
import { onlyonce } from '../../onlyonce/onlyonce.ts'
import { Habits } from './habits.ts'
import { postgres } from './index.ts'

const secret = 'a secret of more than thirty-two bytes.'

describe('habits', () => {
  it('give a name to what comes again and again', () => {
    const habits = new Habits()
    for (let i = 1; i < LIMITS.prepareAfter; i += 1) expect(habits.nameFor('SELECT $1')).toBeUndefined()
    const name = habits.nameFor('SELECT $1')
    expect(name).toMatch(/^onlyonce_work_[0-9a-f]{24}$/)
    expect(habits.nameFor('SELECT $1')).toBe(name)
    expect(habits.nameFor('SELECT $2')).toBeUndefined()
  })

  it('name a bounded number of statements, and forget those that never come again', () => {
    const habits = new Habits()
    const names = new Set<string | undefined>()
    for (let text = 0; text < LIMITS.statementsPreparedMax + 50; text += 1) {
      for (let i = 0; i < LIMITS.prepareAfter; i += 1) names.add(habits.nameFor(`SELECT ${text} + $1`))
    }
    names.delete(undefined)
    expect(names.size).toBe(LIMITS.statementsPreparedMax)
  })

  it('are given up when a table changes below a prepared statement', async () => {
    const database = await freshDatabase()
    const pool = database.pool({ max: 2 })
    await pool.query('CREATE TABLE orders (id int, note text)')
    await pool.query(`INSERT INTO orders VALUES (1, 'one')`)
    const once = onlyonce({ store: postgres({ pool, prepareWork: true }), secret })
    let runs = 0
    const read = (key: string) =>
      once.transaction({ account: 'a', operation: 'orders.read', key }, async (tx) => {
        runs += 1
        return (await tx.query('SELECT * FROM orders WHERE id = $1', [1])).rows[0]
      })
    for (let i = 0; i < 10; i += 1) await read(`before-${i}`)
    const prepared = await pool.query(
      `SELECT count(*)::int AS n FROM pg_prepared_statements WHERE name LIKE 'onlyonce_work_%'`,
    )
    expect(prepared.rows[0].n).toBe(1)
    await pool.query('ALTER TABLE orders ADD COLUMN region text')
    expect(await read('after-the-change')).toEqual({
      outcome: 'executed',
      value: { id: 1, note: 'one', region: null },
    })
    expect(runs).toBeGreaterThan(11)
  })

  it.each([
    ['unless they are asked for', {}],
    ['behind a pooler', { pooler: 'transaction', prepareWork: true }],
  ] as const)('are not taken up %s', async (_, options) => {
    const pool = (await freshDatabase()).pool({ max: 1 })
    const once = onlyonce({ store: postgres({ pool, ...options }), secret })
    for (let i = 0; i < 10; i += 1) {
      await once.transaction({ account: 'a', operation: 'o', key: `key-number-${i}` }, async (tx) => {
        await tx.query('SELECT $1::int', [i])
      })
    }
    const { rows } = await pool.query(
      `SELECT name FROM pg_prepared_statements WHERE name LIKE 'onlyonce_work_%'`,
    )
    expect(rows).toEqual([])
  })
})
