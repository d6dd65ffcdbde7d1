import { AsyncLocalStorage } from 'node:async_hooks'
import { acrossCopies } from '../../copies.ts'

/** A question which transaction of the library's a statement comes to, through whatever objects it was sent. */
export interface Asked {
  own: object | null
}

export const asking = acrossCopies('asking_whose', () => new AsyncLocalStorage<Asked>())
