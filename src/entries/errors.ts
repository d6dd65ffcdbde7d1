/** The table of errors: what each code means, its status, and whether it is worth another try. */
export { ERRORS, type ErrorCode, type Executed, OnlyonceError } from '../core/errors.ts'
export type { InvalidAnswer, InvalidIssue } from '../core/invalid.ts'
