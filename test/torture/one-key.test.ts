import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import type { Result } from '../../src/index.ts'
import { freshDatabase } from '../setup/database.ts'
import { SERVER_CONNECTIONS } from '../setup/pgbouncer.ts'
import { behindPooler } from '../setup/pooler.ts'
import { Talker } from '../setup/talker.ts'
import { waitUntil } from '../setup/wait.ts'

const PROGRAM = new URL('../programs/one-key.ts', import.meta.url)
const PROCESSES = 4
const CALLERS = 50
const GATE = '42'

describe('200 callers with one key over 4 processes, each with a pool of two connections', () => {
  for (const exclusive of [false, true]) {
    it(`have one effect${exclusive ? ', and one execution when exclusive' : ''}`, async () => {
      const database = await freshDatabase()
      const pool = database.direct({ max: 2 })
      await pool.query('CREATE TABLE effects (id bigserial, key text NOT NULL)')
      await pool.query('CREATE SEQUENCE executions')
      const gate = await pool.connect()
      await gate.query('SELECT pg_advisory_lock($1)', [GATE])

      const KEY = randomUUID()
      const EXCLUSIVE = exclusive ? 'yes' : 'no'
      const env = { ...database.environment, KEY, CALLERS: `${CALLERS}`, EXCLUSIVE, GATE }
      const talkers = Array.from({ length: PROCESSES }, () => new Talker(PROGRAM, env))
      for (const talker of talkers) expect(await talker.hear()).toEqual({ ready: true })
      for (const talker of talkers) talker.tell()
      const bystanders = async () => {
        for (const talker of talkers) expect(await talker.hear()).toEqual({ bystanders: 20 })
      }
      const countExecutions = async () =>
        Number((await pool.query('SELECT last_value FROM executions')).rows[0].last_value)
      // Exclusive callers wait for nobody, so one is at the gate at most; otherwise one of each process would be.
      const starving = !exclusive && behindPooler('two connections are two transactions')
      if (starving) {
        const areAtGate = async () => (await countAtGate(pool)) === SERVER_CONNECTIONS
        await waitUntil('all connections wait at the gate', areAtGate)
        expect(await countExecutions()).toBe(SERVER_CONNECTIONS)
      }
      // Bystanders get through although every process has a caller that waits inside its transaction.
      else await bystanders()
      await gate.query('SELECT pg_advisory_unlock($1)', [GATE])
      gate.release()
      if (starving) await bystanders()

      const told: Result<{ id: number }>[] = []
      for (const talker of talkers) told.push(...((await talker.hear()).told as Result<{ id: number }>[]))
      expect(told).toHaveLength(PROCESSES * CALLERS)
      const { rows } = await pool.query('SELECT id::int FROM effects WHERE key = $1', [KEY])
      expect(rows).toHaveLength(1)
      const executions = await countExecutions()
      for (const result of told) {
        // Where bystanders finish at the same time, the last connection of a pool does not wait for a record.
        if (result.outcome === 'in_progress') expect(exclusive || starving).toBe(true)
        else expect(result).toMatchObject({ value: { id: rows[0].id } })
      }
      expect(told.filter(({ outcome }) => outcome === 'executed')).toHaveLength(1)
      if (exclusive) expect(executions).toBe(1)
      else expect(executions).toBeLessThanOrEqual(PROCESSES)
    })
  }
})

async function countAtGate(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query(
    `SELECT count(*)::int AS count FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'`,
  )
  return rows[0].count
}
