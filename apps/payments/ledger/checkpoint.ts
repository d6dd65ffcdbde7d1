import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { INSERT_CHECKPOINTS, LAST_SEQ, OPEN_WRITERS } from './sql.ts'

/** Entries behind the last checkpoint that are worth a new one: fewer are summed in about a millisecond. */
const CHECKPOINT_ENTRIES_MIN = 1_000
/** Balances in one statement: it stays short. */
const CHECKPOINT_GROUPS_MAX = 500
/** How long writers that are open are waited for. What is missed now is done the next time. */
const CHECKPOINT_WAIT_MAX_MS = 5_000
const CHECKPOINT_POLL_MS = 20

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
  options: { readonly entriesMin?: number; readonly waitMaxMs?: number } = {},
): Promise<{ readonly written: number; readonly waitsForWriters: boolean }> {
  const { entriesMin = CHECKPOINT_ENTRIES_MIN, waitMaxMs = CHECKPOINT_WAIT_MAX_MS } = options
  const upTo: string = (await pool.query(LAST_SEQ)).rows[0].seq
  if (!(await writersEnded(pool, waitMaxMs))) return { written: 0, waitsForWriters: true }
  let written = 0
  let last = ['', '', '', '']
  for (;;) {
    const { rows } = await pool.query(INSERT_CHECKPOINTS, [upTo, entriesMin, ...last, CHECKPOINT_GROUPS_MAX])
    const { inserted, account, ledger_account: ledgerAccount, currency, state, number } = rows[0]
    written += inserted
    if (number < CHECKPOINT_GROUPS_MAX) return { written, waitsForWriters: false }
    last = [account, ledgerAccount, currency, state]
  }
}

/** Those who write now; not those who come later, or it would never end. */
async function writersEnded(pool: pg.Pool, waitMaxMs: number): Promise<boolean> {
  const openWriters = async () =>
    new Set<string>((await pool.query(OPEN_WRITERS)).rows.map(({ writer }) => writer))
  let open = await openWriters()
  for (let waitedMs = 0; open.size > 0; waitedMs += CHECKPOINT_POLL_MS) {
    if (waitedMs >= waitMaxMs) return false
    await sleep(CHECKPOINT_POLL_MS)
    const now = await openWriters()
    open = new Set([...open].filter((writer) => now.has(writer)))
  }
  return true
}
