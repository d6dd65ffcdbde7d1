/** The table of limits and defaults. */
export { LIMITS } from '../core/limits.ts'
