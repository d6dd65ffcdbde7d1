/** Fingerprints: strict JSON, RFC 8785, selected fields, keyed digests. No I/O. */
export { canonicalJson } from './canonical.ts'
export { type CompiledFields, compileFields, type FingerprintFields } from './fields.ts'
export { checkInput } from './input.ts'
export type { JsonLimits, JsonValue } from './json.ts'
export { type FingerprintRequest, type Preimage, prepareInput, prepareRequest } from './prepare.ts'
export type { Query } from './query.ts'
export { type Fingerprint, matches, sign } from './sign.ts'
export { type InexactNumber, parseStrictJson, type StrictJson } from './strict-json.ts'
