import type { Mutant } from './mutants.ts'

/** Faults in what a request is called and what of it counts. */
export const REQUEST_MUTANTS: readonly Mutant[] = [
  {
    name: 'call an operation by the mount as the client spelt it',
    file: 'src/http/adapters/express/index.ts',
    edits: [{ from: '{mountOf(app)}', to: '{baseUrl}' }],
    tests: ['test/adapters/express-routes.test.ts'],
    only: 'nested routers with parameters',
  },
  {
    name: 'leave the path as it was spelt out of the fingerprint',
    file: 'src/http/request.ts',
    edits: [{ from: `{ ...pathParams, 'path as sent': path }`, to: `{ ...pathParams, 'path as sent': '' }` }],
    tests: ['test/adapters/express-routes.test.ts'],
    only: 'a list of paths',
  },
  {
    name: 'take the path for a pattern where none is known',
    file: 'src/http/request.ts',
    edits: [
      {
        from: `if (route === null) throw new OnlyonceError('operation_missing')`,
        to: `if (route === null) return 'unnamed'`,
      },
    ],
    tests: ['test/adapters/express-routes.test.ts'],
    only: 'app.use has no pattern',
  },
  {
    name: 'leave the host of a route out of its operation',
    file: 'src/http/adapters/fastify/index.ts',
    edits: [{ from: `constraints: constraintsText(constraints)`, to: `constraints: ''` }],
    tests: ['test/adapters/constraints.test.ts'],
    only: 'Fastify',
  },
  {
    name: 'let all hosts of one route share their keys',
    file: 'src/http/request.ts',
    edits: [{ from: `if (host !== undefined) place['host as sent'] = host\n`, to: `` }],
    tests: ['test/adapters/constraints.test.ts'],
    only: 'one route for many hosts',
  },
  {
    name: 'unpack JSON without a bound',
    file: 'src/http/body.ts',
    edits: [{ from: `{ maxOutputLength: sizeMaxBytes }`, to: `{ maxOutputLength: 1e9 }` }],
    tests: ['src/http/body.test.ts'],
  },
  {
    name: 'obey no charset and refuse none',
    file: 'src/http/body.ts',
    edits: [{ from: `if (json && !isUtf8Json(mediaType)) throw`, to: `if (json && mediaType === '') throw` }],
    tests: ['test/adapters/node.test.ts'],
    only: 'another charset',
  },
  {
    name: 'leave the encoding of bytes out of the fingerprint',
    file: 'src/http/request.ts',
    edits: [{ from: `multipart ? undefined : encodingOf(request)`, to: `undefined` }],
    tests: ['test/adapters/node.test.ts'],
    only: 'counts with its encoding',
  },
  {
    name: 'leave the headers of parts out of the fingerprint',
    file: 'src/fingerprint/prepare.ts',
    edits: [{ from: `...headers.flat(), `, to: `` }],
    tests: ['src/fingerprint/multipart.test.ts'],
    only: 'under another name',
  },
  {
    name: 'let a part hold the boundary',
    file: 'src/fingerprint/multipart.ts',
    edits: [{ from: ` || bytes.toString('latin1', end, next) !== CRLF`, to: `` }],
    tests: ['src/fingerprint/multipart.test.ts'],
  },
  {
    name: 'let two layers around one handler meet each other',
    file: 'src/http/boundary.ts',
    edits: [{ from: `if (met !== undefined) return this.#twice(met, request)\n`, to: `` }],
    tests: ['test/adapters/twice.test.ts'],
    only: 'other policies are told',
  },
  {
    name: 'store what a second layer answers',
    file: 'src/http/twice.ts',
    edits: [{ from: `layer.context.notExecuted()\n`, to: `` }],
    tests: ['test/adapters/twice.test.ts'],
    only: 'other policies are told',
  },
  {
    name: 'answer what input throws as a fact about the key',
    file: 'src/http/operation-input.ts',
    edits: [{ from: `throw isOurs(error) ? error : new RouteThrew(error)`, to: `throw error` }],
    tests: ['test/adapters/fetch.test.ts'],
    only: 'what input throws',
  },
  {
    name: 'take our own refusal of a body for what input throws',
    file: 'src/http/operation-input.ts',
    edits: [
      { from: `throw isOurs(error) ? error : new RouteThrew(error)`, to: `throw new RouteThrew(error)` },
    ],
    tests: ['test/adapters/fetch.test.ts'],
    only: 'that JavaScript would round',
  },
  {
    name: 'wait for a schema that never answers',
    file: 'src/http/prepare.ts',
    edits: [{ from: `jsonOf(request, body)), maxMs)`, to: `jsonOf(request, body)), 1e9)` }],
    tests: ['test/adapters/fetch.test.ts'],
    only: 'a schema that never answers',
  },
  {
    name: 'answer what a schema throws as a fact about the key',
    file: 'src/http/prepare.ts',
    edits: [
      {
        from: `throw new RouteThrew(error)`,
        to: `throw error instanceof OnlyonceError ? error : new RouteThrew(error)`,
      },
    ],
    tests: ['test/adapters/node.test.ts'],
    only: 'Validation',
  },
  {
    name: 'let a body that is not valid claim its key',
    file: 'src/http/boundary.ts',
    edits: [{ from: `prepared.issues === null ? `, to: `prepared.bounds !== null ? ` }],
    tests: ['test/adapters/node.test.ts'],
    only: 'Validation',
  },
  {
    name: 'options: ignore what the protection of a route makes no use of',
    file: 'src/http/policy.ts',
    edits: [{ from: `if (unused !== null) refuse(unused)`, to: `if (unused === '') refuse(unused)` }],
    tests: ['src/http/policy.test.ts'],
    only: 'is refused by a route',
  },
  {
    name: 'options: give a route the defaults that its protection makes no use of',
    file: 'src/http/policy.ts',
    edits: [
      {
        from: `filter(([name]) => isUsedBy(protect, name))`,
        to: `filter(([name]) => isUsedBy(protect, name) || name !== '')`,
      },
    ],
    tests: ['src/http/policy.test.ts'],
    only: 'may be a default',
  },
]
