/** Compares our books with the processor's. */
export {
  type ComparedTime,
  type Comparison,
  compare,
  type Difference,
  differencesOf,
  type OwnMovement,
} from './compare.ts'
export { type Kept, keepRun, type Run } from './keep.ts'
export { type Counts, countsOf, renderJson, renderTable } from './render.ts'
