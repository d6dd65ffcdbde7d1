import type { Mutant } from './mutants.ts'

const MADE = 'test/contract/made-secret.test.ts'

/** Faults in what the front door makes of results, of inputs and of a secret that was left out. */
export const DOOR_MUTANTS: readonly Mutant[] = [
  {
    name: 'unwrap a result that is unknown as if nothing had happened',
    file: 'src/onlyonce/unwrap.ts',
    edits: [
      {
        from: `throw new OnlyonceError('outcome_pending', { detail: result.why, retryAfterMs: result.retryAfterMs })`,
        to: `throw new OnlyonceError('store_unavailable')`,
      },
    ],
    tests: ['src/onlyonce/unwrap.test.ts'],
  },
  {
    name: 'make a key of what the prototype of an input has',
    file: 'src/onlyonce/requests.ts',
    edits: [{ from: 'Object.hasOwn(input, member)', to: 'member in input' }],
    tests: ['src/onlyonce/key-from.test.ts'],
  },
  {
    name: 'make one key of all inputs that lack the member that names them',
    file: 'src/onlyonce/requests.ts',
    edits: [
      {
        from: `if (value !== undefined && value !== null) return value as string`,
        to: `if (has || member !== '') return String(value)`,
      },
    ],
    tests: ['src/onlyonce/key-from.test.ts'],
  },
  {
    name: 'make a key of the first member alone',
    file: 'src/onlyonce/requests.ts',
    edits: [{ from: 'businessKey(operation, ...members)', to: 'businessKey(operation, members.sort()[0]!)' }],
    tests: ['src/onlyonce/key-from.test.ts'],
  },
  {
    name: 'make a secret for each process that starts at once',
    file: 'src/store/postgres/made-secret.ts',
    edits: [
      {
        from: '    kept = await read(connections, statements)\n',
        to: '    kept = { ...(await read(connections, statements)), ...candidate }\n',
      },
    ],
    tests: [MADE],
    only: 'agree on one',
  },
  {
    name: 'forget the secret that was made when a real one is set',
    file: 'src/store/postgres/store.ts',
    edits: [{ from: 'if (keys.made !== undefined) await', to: 'if (keys.made?.candidate != null) await' }],
    tests: [MADE],
    only: 'still replay',
  },
  {
    name: 'make a secret in production',
    file: 'src/onlyonce/made-secret.ts',
    edits: [{ from: 'if (inProduction()) refuse', to: "if (process.env.NODE_ENV === 'live') refuse" }],
    tests: [MADE],
    only: 'where NODE_ENV is',
  },
  {
    name: 'accept keys in production that a reader of the database can issue',
    file: 'src/onlyonce/requests.ts',
    edits: [{ from: 'if (!this.hasOwnSecret || !inProduction())', to: 'if (made !== null)' }],
    tests: [MADE],
    only: 'in production it does not',
  },
  {
    name: 'fingerprint a request of HTTP before the secret is known',
    file: 'src/http/boundary.ts',
    edits: [
      { from: 'const known = this.#engine.secretKnown()', to: 'const known = null as Promise<void> | null' },
    ],
    tests: [MADE],
    only: 'so does HTTP',
  },
  {
    name: 'run a default worker beside the one that takes its place',
    file: 'src/workers/index.ts',
    edits: [{ from: '!given.some((worker) => worker.name === name)', to: 'given.length >= 0 || name' }],
    tests: ['test/operations/all-workers.test.ts'],
    only: 'beside the default ones',
  },
  {
    name: 'run given workers in place of the default ones',
    file: 'src/workers/index.ts',
    edits: [
      {
        from: 'const usual = options.defaults === false ?',
        to: 'const usual = options.defaults === false || given.length > 0 ?',
      },
    ],
    tests: ['test/operations/all-workers.test.ts'],
    only: 'beside the default ones',
  },
  {
    name: 'begin every page of parked jobs at the first',
    file: 'src/store/postgres/sql/relay.ts',
    edits: [
      {
        from: 'WHERE $2::bigint IS NULL OR (at_us',
        to: 'WHERE $2::bigint IS NULL OR $2::bigint > 0 OR (at_us',
      },
    ],
    tests: ['test/outbox/jobs.test.ts'],
    only: 'page by page',
  },
]
