import { AsyncLocalStorage } from 'node:async_hooks'
import { acrossCopies } from '../../core/copies.ts'

/** Asks in which transaction of the library a statement runs, also where it was sent through objects of the caller. */
export interface Asked {
  own: object | null
}

export const asking = acrossCopies('asking_whose', () => new AsyncLocalStorage<Asked>())
