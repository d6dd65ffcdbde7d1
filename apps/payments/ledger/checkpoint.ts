import { setTimeout as sleep } from 'node:timers/promises'
import type { Worker } from 'onlyonce'
import type pg from 'pg'
import { INSERT_CHECKPOINTS, LAST_SEQ, OPEN_WRITERS } from './sql.ts'

/** Entries behind the last checkpoint that are worth a new one: fewer are summed in about a millisecond. */
const CHECKPOINT_ENTRIES_MIN = 1_000
/** Balances in one statement: it stays short. */
const CHECKPOINT_GROUPS_MAX = 500
/** How long writers that are open are waited for. What is missed now is done the next time. */
const CHECKPOINT_WAIT_MAX_MS = 5_000
const CHECKPOINT_POLL_MS = 20
const CHECKPOINT_EVERY_MS = 300_000

/**
 * Writes down what balances have come to, so that they are summed from there on.
 *
 * Entries are numbered before they are committed, so a number may still be open below one that is visible. A checkpoint
 * is up to the last number given when it began, and is written when everybody who wrote entries then has ended: nothing can
 * appear below it any more. Nobody is kept waiting. The numbers come from a sequence: after a failover by logical replication, which
 * leaves sequences behind, set it above the largest number before anybody posts.
 *
 * @example
 * const { written } = await checkpoint(pool)
 */
export async function checkpoint(
  pool: pg.Pool,
  options: { readonly entries_min?: number; readonly wait_max_ms?: number } = {},
): Promise<{ readonly written: number; readonly waits_for_writers: boolean }> {
  const { entries_min = CHECKPOINT_ENTRIES_MIN, wait_max_ms = CHECKPOINT_WAIT_MAX_MS } = options
  const up_to: string = (await pool.query(LAST_SEQ)).rows[0].seq
  if (!(await writersEnded(pool, wait_max_ms))) return { written: 0, waits_for_writers: true }
  let written = 0
  let last = ['', '', '', '']
  for (;;) {
    const { rows } = await pool.query(INSERT_CHECKPOINTS, [
      up_to,
      entries_min,
      ...last,
      CHECKPOINT_GROUPS_MAX,
    ])
    const { inserted, account, ledger_account, currency, state, number } = rows[0]
    written += inserted
    if (number < CHECKPOINT_GROUPS_MAX) return { written, waits_for_writers: false }
    last = [account, ledger_account, currency, state]
  }
}

/** Writes checkpoints now and then, so that a balance never takes longer the more was paid. In any number of processes. */
export function checkpointer({ pool }: { readonly pool: pg.Pool }): Worker {
  return {
    name: 'ledger.checkpointer',
    every_ms: CHECKPOINT_EVERY_MS,
    async runOnce() {
      return { done: (await checkpoint(pool)).written, more: false }
    },
  }
}

/** Those who write now; not those who come later, or it would never end. */
async function writersEnded(pool: pg.Pool, wait_max_ms: number): Promise<boolean> {
  const openWriters = async () =>
    new Set<string>((await pool.query(OPEN_WRITERS)).rows.map(({ writer }) => writer))
  let open = await openWriters()
  for (let waited_ms = 0; open.size > 0; waited_ms += CHECKPOINT_POLL_MS) {
    if (waited_ms >= wait_max_ms) return false
    await sleep(CHECKPOINT_POLL_MS)
    const now = await openWriters()
    open = new Set([...open].filter((writer) => now.has(writer)))
  }
  return true
}
