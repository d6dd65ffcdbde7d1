/** JSON as the library reads it: no member twice, no number that changes. */
export {
  type InexactNumber,
  type JsonLimits,
  type JsonValue,
  parseStrictJson,
  type StrictJson,
} from '../fingerprint/index.ts'
