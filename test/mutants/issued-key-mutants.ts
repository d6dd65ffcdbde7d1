import type { Mutant } from './mutants.ts'

const ISSUED = 'test/contract/issued.test.ts'

/** Faults in the making and the judging of issued keys. */
export const ISSUED_KEY_MUTANTS: readonly Mutant[] = [
  {
    name: 'bind an issued key to no account',
    file: 'src/key/issued.ts',
    edits: [
      {
        from: `encodeParts(DOMAIN, VERSION, keyId, account, operation,`,
        to: `encodeParts(DOMAIN, VERSION, keyId, account.slice(0, 0), operation,`,
      },
    ],
    tests: [ISSUED],
  },
  {
    name: 'take any key that looks issued for an issued one',
    file: 'src/key/issued.ts',
    edits: [
      {
        from: `if (!timingSafeEqual(mac, macOf(signingKey, { keyId, scope, expiresAtS, nonce }))) refuse()`,
        to: `void timingSafeEqual(mac, macOf(signingKey, { keyId, scope, expiresAtS, nonce }))`,
      },
    ],
    tests: [ISSUED],
  },
  {
    name: 'start new work under an issued key that has expired',
    file: 'src/protect/lapsed.ts',
    edits: [{ from: `(before === 'none' || before`, to: `(before !== 'none' && before` }],
    tests: [ISSUED],
  },
  {
    name: 'claim in a handler before looking whether the key may start anything',
    file: 'src/protect/handler.ts',
    edits: [
      {
        from: `  if (lapsed !== null) refuseNewWork(lapsed, (await store.look(id))?.record.state ?? 'none')\n`,
        to: ``,
      },
      {
        from: `  if (decision.kind !== 'run') return outcomeOf(decision)\n`,
        to: `  if (decision.kind !== 'run') return outcomeOf(decision)\n  if (decision.record.fence === 1) refuseNewWork(lapsed, 'none')\n`,
      },
    ],
    tests: [ISSUED],
  },
  {
    name: 'refuse the reply of a completed request because its key has expired',
    file: 'src/protect/lapsed.ts',
    edits: [
      {
        from: `if (lapsed !== null && (before === 'none' || before === 'expired')) throw`,
        to: `void before\n  if (lapsed !== null) throw`,
      },
    ],
    tests: [ISSUED],
  },
  {
    name: 'send for a new key while the first attempt may still be under way',
    file: 'src/onlyonce/issuer.ts',
    edits: [
      {
        from: `return ageMs <= settledMs ? 'key_just_expired' : 'key_expired'`,
        to: `return ageMs <= settledMs ? 'key_expired' : 'key_expired'`,
      },
    ],
    tests: [ISSUED],
  },
  {
    name: 'accept keys of the client where issued ones are required',
    file: 'src/key/check.ts',
    edits: [
      { from: `if (issued === 'required') throw new OnlyonceError('key_not_issued')`, to: `void issued` },
    ],
    tests: [ISSUED],
  },
]
