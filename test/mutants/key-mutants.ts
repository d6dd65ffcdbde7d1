import type { Mutant } from './mutants.ts'

const SEALED = 'test/contract/sealed.test.ts'

/** Faults in what seals replies, and in the rule about keys that are missing at a start. */
export const KEY_MUTANTS: readonly Mutant[] = [
  {
    name: 'seal a reply without binding it to its account',
    file: 'src/seal/seal.ts',
    edits: [
      {
        from: `encodeParts(DOMAIN, account, operation, key)`,
        to: `encodeParts(DOMAIN, account && '', operation, key)`,
      },
    ],
    tests: [SEALED],
    only: 'moved to another account',
  },
  {
    name: 'seal a reply without binding it to its key',
    file: 'src/seal/seal.ts',
    edits: [
      {
        from: `encodeParts(DOMAIN, account, operation, key)`,
        to: `encodeParts(DOMAIN, account, operation, key && '')`,
      },
    ],
    tests: [SEALED],
    only: 'moved to another key',
  },
  {
    name: 'let status and schema of a sealed reply be exchanged',
    file: 'src/seal/seal.ts',
    edits: [{ from: `beside: [status, schema] }`, to: `beside: [status && 0, schema && 0] }` }],
    tests: ['src/seal'],
  },
  {
    name: 'take a reply that cannot be opened for absent',
    file: 'src/store/sealed.ts',
    edits: [
      {
        from: `    return seen === null ? null : { record: this.#opening(id, seen.record), now: seen.now }`,
        to: `    try {
      if (seen?.record.state === 'completed') this.#seal.openReply(id, seen.record.reply)
    } catch {
      return null
    }
    return seen === null ? null : { record: this.#opening(id, seen.record), now: seen.now }`,
      },
    ],
    tests: [SEALED],
    only: 'moved to another key',
  },
  {
    name: 'open a reply before the fingerprints are compared',
    file: 'src/store/sealed.ts',
    edits: [
      {
        from: `      get reply() {
        return seal.openReply(id, reply)
      },`,
        to: `      reply: seal.openReply(id, reply),`,
      },
    ],
    tests: [SEALED],
  },
  {
    name: 'seal only what handlers reply',
    file: 'src/store/sealed.ts',
    edits: [{ from: `return this.#seal.sealReply(id, sealing.plain)`, to: `return sealing.plain` }],
    tests: ['test/contract/canary.test.ts'],
  },
  {
    name: 'give back the sealed reply of a COMMIT whose answer was lost',
    file: 'src/store/sealed.ts',
    edits: [{ from: ` || end.end === 'in_doubt'`, to: `` }],
    tests: [SEALED],
  },
  {
    name: 'start although a record names a missing key',
    file: 'src/store/postgres/key-ids.ts',
    edits: [{ from: `if (named.length > 0) throw keyRingIncomplete(named, keys)`, to: `` }],
    tests: ['src/store/postgres/conformance.test.ts'],
    only: 'refuses to start without the fingerprint key',
  },
  {
    name: 'take a missing key for unused when the records could not be read in time',
    file: 'src/store/postgres/key-ids.ts',
    edits: [
      { from: `throw keyRingIncomplete(missing, keys, why, error)`, to: `return why === '' ? missing : []` },
    ],
    tests: ['test/contract/missing-keys.test.ts'],
    only: 'in bounded time',
  },
  {
    name: 'take other bytes under the id of a key for the same key',
    file: 'src/store/missing-keys.ts',
    edits: [{ from: `keys.digestOf(purpose, keyId) !== digest`, to: `digest === ''` }],
    tests: ['test/contract/missing-keys.test.ts'],
    only: 'other bytes under the id',
  },
  {
    name: 'forget the keys of records that are older than the list of keys',
    file: 'migrations/0002_keys_and_traces.sql',
    edits: [{ from: `FROM records WHERE state <> 'expired'`, to: `FROM records WHERE false` }],
    tests: ['test/migrations.faults.test.ts'],
    only: 'older records name',
  },
]
