/** Seals: what is stored of replies and inputs, unreadable and unmovable without a key. No I/O. */
export { Seal, type Sealed, type SealedPlace } from './seal.ts'
