import { type Operation, OperationReply, operation, type Queryable, reply } from 'onlyonce'
import type { Outbox } from 'onlyonce/outbox'
import { findAccount } from '../accounts/index.ts'
import { isId, makeId } from '../ids.ts'
import {
  availableOf,
  lockBalance,
  post,
  reverse,
  transferInLines,
  transferOutLines,
} from '../ledger/index.ts'
import type { Money } from '../money/index.ts'
import { withoutMetadata } from '../payments/rows.ts'
import { type ProblemCode, problemReply } from '../problems.ts'
import { END_TRANSFER, INSERT_TRANSFER } from './sql.ts'
import { presentReceived, presentTransfer, type TransferRow, type TransferStatus } from './transfer.ts'

export interface CreateTransfer extends Money {
  /** The account that receives it, `acct_…`: of the mode of the one that sends. */
  readonly destination: string
  readonly reference: string | null
  readonly metadata: Readonly<Record<string, string>>
}

/**
 * Money from one account's balance to another's. Beside the operation's own record, each step writes for one account, so that
 * accounts may live on different machines: the money leaves, arrives, and is settled, and in between it is in `transfers`.
 * What cannot arrive comes back by a reversal. Nothing is foreign here, so no outcome is ever in doubt.
 *
 * The debit only waits for other debits of the same balance (`read committed`, behind its lock): serializable, fifty at
 * once would collide more often than a step is repeated.
 *
 * @example
 * const createTransfer = makeCreateTransfer(outbox(once))
 * await once.run(createTransfer, { account, key, input })
 */
export function makeCreateTransfer({ emit }: Pick<Outbox, 'emit'>): Operation<CreateTransfer, unknown> {
  return operation('transfers.create', async (op, input: CreateTransfer) => {
    const { account } = op
    const destination = destinationOf(account, input.destination)
    const debited = await op.transaction('debited', (tx) => debit(tx, account, destination, input), WAITING)
    if (debited instanceof OperationReply) return debited
    const { id } = debited
    const aggregate = `transfer:${id}`
    let failureCode: ProblemCode = 'internal'
    op.compensate('debit_undone', async (tx) => {
      await reverse(tx, { account, kind: 'transfer_return', source: id, of: { kind: OUT, source: id } })
      const row = await end(tx, account, id, 'failed', failureCode)
      await op.emit(tx, 'transfer.failed', withoutMetadata(presentTransfer(row)), { aggregate })
    })

    // The receiver hears of it in the commit in which it arrives, as its account is not touched again.
    const payload = presentReceived(account, debited)
    const received = { account: destination, aggregate, payload }
    const { credited } = await op.transaction(
      'credited',
      async (tx) => {
        if ((await findAccount(tx, destination)) === null) return { credited: false }
        const lines = transferInLines(input)
        await post(tx, { account: destination, kind: IN, source: id, state: 'posted', lines })
        await emit(tx, { ...received, type: 'transfer.received' })
        return { credited: true }
      },
      WAITING,
    )
    if (!credited) {
      failureCode = 'destination_unknown'
      return await op.undo(unknownDestination())
    }
    // Whatever keeps it from being settled, money that goes back must not also stay there.
    op.compensate('credit_undone', async (tx) => {
      const of = { kind: IN, source: id }
      await reverse(tx, { account: destination, kind: 'transfer_recall', source: id, of })
      await emit(tx, { ...received, type: 'transfer.recalled' })
    })

    return await op.transaction('settled', async (tx) => {
      const transfer = presentTransfer(await end(tx, account, id, 'succeeded', null))
      await op.emit(tx, 'transfer.succeeded', withoutMetadata(transfer), { aggregate })
      return reply(201, transfer, { location: `/v1/transfers/${id}` })
    })
  })
}

const OUT = 'transfer_out'
const IN = 'transfer_in'
const WAITING = { isolation: 'read committed' } as const

async function debit(
  tx: Queryable,
  account: string,
  destination: string,
  { amount, currency, reference, metadata }: CreateTransfer,
) {
  // What can be told without a look at another account is told before anything moves.
  if (destination === account || !isAccount(destination)) return unknownDestination()
  await lockBalance(tx, account, currency)
  const available = await availableOf(tx, account, currency)
  if (available < BigInt(amount)) {
    return problemReply('balance_insufficient', {
      detail: `The balance has ${available} ${currency} available, in minor units, and the transfer takes ${amount}.`,
      field: 'amount',
    })
  }
  const id = makeId('trf')
  const { rows } = await tx.query(INSERT_TRANSFER, [
    account,
    id,
    destination,
    amount,
    currency,
    reference,
    JSON.stringify(metadata),
  ])
  const lines = transferOutLines({ amount, currency })
  await post(tx, { account, kind: OUT, source: id, state: 'posted', lines })
  return presentTransfer((rows as TransferRow[])[0]!)
}

async function end(
  tx: Queryable,
  account: string,
  id: string,
  status: Exclude<TransferStatus, 'processing'>,
  failureCode: ProblemCode | null,
): Promise<TransferRow> {
  const { rows } = await tx.query(END_TRANSFER, [account, id, status, failureCode])
  const [row] = rows as TransferRow[]
  if (row === undefined) throw new Error(`The transfer ${id} has ended already.`)
  return row
}

/** In the mode of the sender, by construction. */
function destinationOf(account: string, destination: string): string {
  return `${destination}${account.slice(account.indexOf(':'))}`
}

/** A destination that brings a mode of its own, or is no id, is nobody's. */
function isAccount(account: string): boolean {
  const [id, , ...more] = account.split(':')
  return isId('acct', id) && more.length === 0
}

function unknownDestination() {
  return problemReply('destination_unknown', { field: 'destination' })
}
