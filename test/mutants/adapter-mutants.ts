import type { Mutant } from './mutants.ts'

const NOTHING_BEGUN = ['test/contract/nothing-begun.test.ts']

/** Faults in what adapters make of a request before its handler, and in what they tell of it. */
export const ADAPTER_MUTANTS: readonly Mutant[] = [
  {
    name: 'truth: say of a request without an account that its outcome is not known',
    file: 'src/key/scope.ts',
    edits: [{ from: `checkName(account, 'account_invalid')`, to: `checkName(account, 'option_invalid')` }],
    tests: NOTHING_BEGUN,
    only: 'an account that is empty',
  },
  {
    name: 'truth: say of an input that cannot be stored that its outcome is not known',
    file: 'src/value.ts',
    edits: [
      {
        from: `    throw new OnlyonceError('input_not_serializable', { detail: (cause as Error).message, cause })`,
        to: `    throw cause`,
      },
    ],
    tests: NOTHING_BEGUN,
    only: 'an input of an operation',
  },
  {
    name: 'truth: say of a request over HTTP/2 that its outcome is not known',
    file: 'src/adapters/node/serve.ts',
    edits: [
      {
        from: `new OnlyonceError('setup_invalid', { detail: HTTP2_REFUSED })`,
        to: `new OnlyonceError('option_invalid', { detail: HTTP2_REFUSED })`,
      },
    ],
    tests: ['test/adapters/http2.test.ts'],
    only: 'refused at the first request',
  },
]
