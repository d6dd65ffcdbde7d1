import type { Queryable } from 'onlyonce'
import type pg from 'pg'
import { CHECKS, COUNTS, IN_FLIGHT } from './verify-sql.ts'

/** What is told of one kind of problem. Whoever has more of them knows enough. */
const SHOWN_MAX = 100

export type CheckName = keyof typeof CHECKS

export interface LedgerProblem {
  readonly check: CheckName
  readonly account: string | null
  /** Of the transaction, transfer, trigger or constraint. */
  readonly id: string | null
  readonly what: string
}

export interface InFlight {
  /** Where it left from. */
  readonly account: string
  readonly source: string
  readonly currency: string
  readonly amount: string
  readonly since: Date
}

export interface Verification {
  readonly ok: boolean
  readonly transactions: number
  readonly entries: number
  readonly problems: readonly LedgerProblem[]
  /** Transfers that have left one account and not arrived at the other. */
  readonly in_flight: readonly InFlight[]
  /** What was found more often than is told. */
  readonly cut_short: readonly string[]
}

/**
 * Proves the ledger over the whole of its tables, from the entries up, as of one moment. It writes nothing and takes no lock that
 * anybody waits for; memory here is bounded by what is told.
 *
 * @example
 * const { ok, problems } = await verify(pool)
 */
export async function verify(pool: pg.Pool): Promise<Verification> {
  const client = await pool.connect()
  let broken = true
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const verification = await verifyWithin(client)
    await client.query('COMMIT')
    broken = false
    return verification
  } finally {
    client.release(broken)
  }
}

/** In a transaction of the caller's, which should have one snapshot for all. */
export async function verifyWithin(client: Queryable): Promise<Verification> {
  const cutShort: string[] = []
  const read = async (name: string, text: string) => {
    const { rows } = await client.query(`${text}\nLIMIT ${SHOWN_MAX + 1}`)
    if (rows.length > SHOWN_MAX) cutShort.push(name)
    return rows.slice(0, SHOWN_MAX)
  }
  const problems: LedgerProblem[] = []
  for (const [check, text] of Object.entries(CHECKS) as [CheckName, string][]) {
    const rows = await read(check, text)
    problems.push(...rows.map(({ account, id, what }) => ({ check, account, id, what })))
  }
  const inFlight: readonly InFlight[] = await read('in_flight', IN_FLIGHT)
  const { rows } = await client.query(COUNTS)
  return {
    ok: problems.length === 0,
    transactions: Number(rows[0].transactions),
    entries: Number(rows[0].entries),
    problems,
    in_flight: inFlight,
    cut_short: cutShort,
  }
}
