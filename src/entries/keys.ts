/** Keys: how they are read, derived and handed out, and what must not be in them. */
export { derivedKey, holdsCardNumber, type KeyRules, maskCardNumbers, parseKeyHeader } from '../key/index.ts'
export type { IssueKeyCall } from '../onlyonce/door.ts'
