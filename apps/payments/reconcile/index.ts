/** Compares our books with the processor's. */
export {
  type ComparedTime,
  type Comparison,
  compare,
  type Difference,
  differencesOf,
  mergeComparisons,
  type OwnMovement,
} from './compare.ts'
export { type Kept, keepRun, type Run } from './keep.ts'
export { type OwnRange, ownMovements } from './own.ts'
export { booksOf, type Reconciled, type ReconcileOptions, reconcile } from './reconcile.ts'
export { type Counts, countsOf, renderJson, renderTable } from './render.ts'
export { bookReconciler } from './worker.ts'
