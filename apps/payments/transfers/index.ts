/** Transfers between the balances of two accounts. */
export { type CreateTransfer, makeCreateTransfer } from './create.ts'
export {
  findTransfer,
  presentReceived,
  presentTransfer,
  type ReceivedTransfer,
  type Transfer,
  type TransferRow,
  type TransferStatus,
} from './transfer.ts'
