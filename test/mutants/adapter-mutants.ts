import type { Mutant } from './mutants.ts'

const NEW_REQUEST = ['test/adapters/new-request.test.ts']
const SEVERAL_PATHS = ['test/adapters/several-paths.test.ts']
const NOTHING_BEGUN = ['test/contract/nothing-begun.test.ts']

/** Faults in what adapters make of a request before its handler, and in what they tell of it. */
export const ADAPTER_MUTANTS: readonly Mutant[] = [
  {
    name: 'twice: look for another layer on the request alone',
    file: 'src/boundary/layers.ts',
    edits: [{ from: `following.storage?.getStore()?.layer ?? null`, to: `null as Layer | null` }],
    tests: NEW_REQUEST,
    only: 'equal options|other options',
  },
  {
    name: 'twice: take every request that a handler makes for its own',
    file: 'src/boundary/layers.ts',
    edits: [
      {
        from: `isOfSame(around, request, headers, asking) ? around`,
        to: `around.context !== null ? around`,
      },
    ],
    tests: NEW_REQUEST,
    only: 'protected for themselves',
  },
  {
    name: 'twice: take what a handler has left alone for a part of it',
    file: 'src/boundary/layers.ts',
    edits: [{ from: `    mark.layer = null\n`, to: `` }],
    tests: NEW_REQUEST,
    only: 'left alone',
  },
  {
    name: 'paths: run one key once under each pattern of a handler',
    file: 'src/boundary/request.ts',
    edits: [{ from: `if (patterns.length > 1)`, to: `if (patterns.length > 100)` }],
    tests: SEVERAL_PATHS,
    only: 'none of them runs',
  },
  {
    name: 'paths: start with a list of paths that has no name',
    file: 'src/adapters/nest/routes.ts',
    edits: [{ from: `if (paths.size > 1)`, to: `if (paths.size > 100)` }],
    tests: SEVERAL_PATHS,
    only: 'refused at the start',
  },
  {
    name: 'paths: take a validator for the handler',
    file: 'src/adapters/hono/route.ts',
    edits: [{ from: `chain.at(-1)!.handler`, to: `behind.handler` }],
    tests: SEVERAL_PATHS,
    only: 'one validator',
  },
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
