import type { Queryable } from 'onlyonce'
import { isId } from '../ids.ts'
import type { ProblemCode } from '../problems.ts'
import { FIND_TRANSFER } from './sql.ts'

export type TransferStatus = 'processing' | 'succeeded' | 'failed'

/** A row as the database gives it. */
export interface TransferRow {
  readonly account: string
  readonly id: string
  readonly destination: string
  /** A bigint, so it comes as text. */
  readonly amount: string
  readonly currency: string
  readonly reference: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly status: TransferStatus
  readonly failure_code: ProblemCode | null
  readonly created_at: Date
}

/** A transfer as its sender sees it. */
export interface Transfer {
  readonly id: string
  readonly destination: string
  readonly amount: number
  readonly currency: string
  readonly reference: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly status: TransferStatus
  readonly failure_code: ProblemCode | null
  readonly created_at: string
}

/** A transfer as its receiver sees it: the sender's metadata is the sender's. */
export interface ReceivedTransfer
  extends Pick<Transfer, 'id' | 'amount' | 'currency' | 'reference' | 'created_at'> {
  readonly source: string
}

export function presentTransfer(row: TransferRow): Transfer {
  return {
    id: row.id,
    destination: accountId(row.destination),
    amount: Number(row.amount),
    currency: row.currency,
    reference: row.reference,
    metadata: row.metadata,
    status: row.status,
    failure_code: row.failure_code,
    created_at: row.created_at.toISOString(),
  }
}

/** Of a transfer that this account has sent. */
export function presentReceived(
  account: string,
  { id, amount, currency, reference, created_at: createdAt }: Omit<ReceivedTransfer, 'source'>,
): ReceivedTransfer {
  return { id, source: accountId(account), amount, currency, reference, created_at: createdAt }
}

/** Null where this account has sent no such transfer. */
export async function findTransfer(db: Queryable, account: string, id: string): Promise<TransferRow | null> {
  if (!isId('trf', id)) return null
  const { rows } = await db.query(FIND_TRANSFER, [account, id])
  return (rows as TransferRow[])[0] ?? null
}

/** Clients know accounts without their mode, which their API key has. */
function accountId(account: string): string {
  return account.slice(0, account.indexOf(':'))
}
