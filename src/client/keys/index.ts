/**
 * The key of an action: made from what the action is about, or kept until its outcome is known, over a second tap, a reload and other tabs.
 * It is a door of its own, so that a page that needs the `fetch` alone loads nothing else.
 *
 * @module
 */
export { businessKey } from './business-key.ts'
export {
  type ActionTurn,
  type PendingAction,
  type PendingActionOptions,
  pendingAction,
  type Unsettled,
} from './pending.ts'
export { indexedDbStorage, type KeyStorage, memoryStorage } from './storage.ts'
