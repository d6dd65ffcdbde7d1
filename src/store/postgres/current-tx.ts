import { AsyncLocalStorage } from 'node:async_hooks'
import { acrossCopies } from '../../core/copies.ts'
import type { PostgresTx } from './tx.ts'

/** A transaction whose function runs, or has run. */
export type RunningTx = PostgresTx & { readonly over: boolean }

/** Only entered where `postgres({ currentTx: true })` asks for it: while one is, every promise of the process takes longer. */
export const running = acrossCopies('current_tx', () => new AsyncLocalStorage<RunningTx>())
