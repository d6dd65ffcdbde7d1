/** Keys: header syntax, rules, scopes, business keys, issued keys and the keys of foreign calls. No I/O. */
export { businessKey } from './business.ts'
export { maskCardNumbers } from './card.ts'
export { checkKey } from './check.ts'
export { derivedKey } from './derived.ts'
export { parseKeyHeader } from './header.ts'
export { IssuedKeys, looksIssued, type SigningRing } from './issued.ts'
export { type KeyRules, keyRules, type ResolvedKeyRules } from './rules.ts'
export { checkName, operationName, operationVersion, type Scope, scopeOf } from './scope.ts'
