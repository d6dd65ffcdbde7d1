import type { Mutant } from './mutants.ts'

const TYPED = ['test/adapters/typed.test.ts']
const ROUTE_HOOKS = ['test/contract/route-hooks.test.ts']
const STREAM_TROUBLE = ['test/adapters/broken-streams.test.ts']
const OWN_REQUESTS = ['test/adapters/own-requests.test.ts']
const NEW_REQUEST = ['test/adapters/new-request.test.ts']
const SEVERAL_PATHS = ['test/adapters/several-paths.test.ts']
const NOTHING_BEGUN = ['test/contract/nothing-begun.test.ts']

/** Faults in what adapters make of a request before its handler, and in what they tell of it. */
export const ADAPTER_MUTANTS: readonly Mutant[] = [
  {
    name: 'route hooks: let a hook that throws take the place of an answer',
    file: 'src/http/hooks.ts',
    edits: [
      {
        from: `callGuarded(() => onReplay({ account, operation, key, status }), failed)`,
        to: `onReplay({ account, operation, key, status })`,
      },
    ],
    tests: ROUTE_HOOKS,
    only: 'harms no answer',
  },
  {
    name: 'route hooks: take what a function says for a key without any rules',
    file: 'src/http/key-source.ts',
    edits: [{ from: `return checkKey(given, rules)`, to: `return given as string` }],
    tests: ['test/adapters/node.test.ts'],
    only: 'told by a function of the route',
  },
  {
    name: 'route hooks: meet the same request as another one in progress, where a function tells its key',
    file: 'src/http/layers.ts',
    edits: [{ from: `return given.includes(layer.context.key)`, to: `return given.length > 2` }],
    tests: ROUTE_HOOKS,
    only: 'under a new object',
  },
  {
    name: 'koa: answer an error of the connection in place of the handler',
    file: 'src/http/adapters/koa/stand-apart.ts',
    edits: [{ from: `if (ofConnection) kept`, to: `if (ofConnection && error === null) kept` }],
    tests: ['test/adapters/koa3.test.ts'],
    only: 'hangs up while it runs',
  },
  {
    name: 'typed routes: run the handler of a Fastify route that the plugin has not seen',
    file: 'src/http/adapters/fastify/index.ts',
    edits: [
      {
        from: `    throw notSeen(request)\n`,
        to: `    return (handler as unknown as () => unknown)(request)\n`,
      },
    ],
    tests: TYPED,
    only: 'has not seen',
  },
  {
    name: 'typed routes: tell a client of NestJS that an operation was done which no key asked for',
    file: 'src/http/adapters/nest/call.ts',
    edits: [
      { from: `if (boundary.policy.durable !== null) return`, to: `if (boundary === undefined) return` },
    ],
    tests: TYPED,
    only: 'durable operation, which passes nothing on',
  },
  {
    name: 'typed routes: let NestJS start with @Tx() where there is no transaction',
    file: 'src/http/adapters/nest/routes.ts',
    edits: [
      {
        from: `boundary.policy.protect !== 'transaction') refuse(NO_TX)`,
        to: `boundary === undefined) refuse(NO_TX)`,
      },
    ],
    tests: TYPED,
    only: 'without a transaction',
  },
  {
    name: 'typed routes: hold a rolled back transaction of Express for done where its handler was passed to the layer',
    file: 'src/http/adapters/express/index.ts',
    edits: [
      {
        from: `hearNotExecuted(errorFor(error), request, response, next))`,
        to: `response.status?.(201).json({}))`,
      },
    ],
    tests: TYPED,
    only: 'that throws is rolled back',
  },
  {
    name: 'Fastify: commit a transaction that throws behind its reply',
    file: 'src/http/adapters/fastify/guard.ts',
    edits: [
      { from: `if (reply.sent || sending.begun) passOn(`, to: `if (sending.begun && !reply.sent) passOn(` },
    ],
    tests: ['test/adapters/fastify.test.ts'],
  },
  {
    name: 'Fastify: send the body of a reply with the status of an error that came behind it',
    file: 'src/http/adapters/fastify/guard.ts',
    edits: [{ from: `if (reply.sent || !sending.begun) throw error`, to: `if (reply !== null) throw error` }],
    tests: ['test/adapters/fastify-own.test.ts'],
    only: 'throws behind it',
  },
  {
    name: 'Fastify: commit a transaction that throws while its reply is under way',
    file: 'src/http/adapters/fastify/guard.ts',
    edits: [{ from: `if (reply.sent || sending.begun) passOn(`, to: `if (reply.sent) passOn(` }],
    tests: ['test/adapters/fastify-own.test.ts'],
    only: 'throws behind it',
  },
  {
    name: 'send the reply of a transaction that throws behind it and is rolled back',
    file: 'src/http/ran.ts',
    edits: [{ from: `if (thrown?.hadReplied === true) throw`, to: `if (thrown === undefined) throw` }],
    tests: ['test/adapters/node.test.ts'],
  },
  {
    name: 'Express: cut the connection of a handler that throws behind its reply',
    file: 'src/http/adapters/express/index.ts',
    edits: [
      {
        from: `if (request.idempotency !== undefined)\n`,
        to: `if (request.idempotency !== undefined && !writableEnded)\n`,
      },
    ],
    tests: ['test/adapters/express5.test.ts'],
  },
  {
    name: 'express: tell only that a handler answered 500, and not what it threw',
    file: 'src/http/adapters/said.ts',
    edits: [
      {
        from: `  context?.hear?.(error, hadReplied)
`,
        to: ``,
      },
    ],
    tests: ['test/adapters/express-routes.test.ts'],
    only: 'what a handler threw is told',
  },
  {
    name: 'signal: let a handler that is given up go on without a word',
    file: 'src/protect/in-time.ts',
    edits: [{ from: `    .timeIsOver()\n`, to: `    .quiet()\n` }],
    tests: ['test/contract/time-over.test.ts'],
  },
  {
    name: 'streams: let a handler wait for a client that is gone',
    file: 'src/http/adapters/node/shield.ts',
    edits: [{ from: `      this.#whenGone()\n`, to: `` }],
    tests: STREAM_TROUBLE,
    only: 'node:http.*holds nothing up',
  },
  {
    name: 'streams: wait for the end of a stream that has failed',
    file: 'src/http/adapters/node/tee.ts',
    edits: [{ from: `      reject(error ?? new Error('The handler destroyed its response.'))\n`, to: `` }],
    tests: STREAM_TROUBLE,
    only: 'node:http stream: true',
  },
  {
    name: 'streams: learn nothing of a socket that Express destroys',
    file: 'src/http/adapters/express/index.ts',
    edits: [{ from: `if (request.idempotency !== undefined)\n`, to: `if (request.idempotency === null)\n` }],
    tests: STREAM_TROUBLE,
    only: 'has begun to write',
  },
  {
    name: 'streams: never hold up what is held back',
    file: 'src/http/adapters/node/capture.ts',
    edits: [{ from: `return this.#pace.took(bytes.length)`, to: `return true` }],
    tests: STREAM_TROUBLE,
    only: 'is held back',
  },
  {
    name: 'streams: never hold up what is made for a client that is gone',
    file: 'src/http/adapters/node/tee.ts',
    edits: [{ from: `      pace.goOnSoon()\n      return false`, to: `      return true` }],
    tests: STREAM_TROUBLE,
    only: 'is gone',
  },
  {
    name: 'streams: read a response without an end for ever',
    file: 'src/http/adapters/fetch/response.ts',
    edits: [{ from: `sizeBytes > sizeMaxBytes && isOver()`, to: `false` }],
    tests: STREAM_TROUBLE,
    only: 'is given up',
  },
  {
    name: 'twice: look for another layer on the request alone',
    file: 'src/http/layers.ts',
    edits: [{ from: `following.storage?.getStore()?.layer ?? null`, to: `null as Layer | null` }],
    tests: NEW_REQUEST,
    only: 'equal options|other options',
  },
  {
    name: 'twice: take every request that a handler makes for its own',
    file: 'src/http/layers.ts',
    edits: [
      { from: `if (hasKeyOf(layer, request, headers)) return`, to: `if (headers !== undefined) return` },
    ],
    tests: NEW_REQUEST,
    only: 'protected for themselves',
  },
  {
    name: 'twice: take a request for another account for the request of the handler',
    file: 'src/http/layers.ts',
    edits: [{ from: `if (asking.account !== layer.account) return undefined\n`, to: `` }],
    tests: OWN_REQUESTS,
    only: 'another account',
  },
  {
    name: 'twice: let a layer inside speak for a handler that goes on',
    file: 'src/http/twice.ts',
    edits: [{ from: `body.equals(reply.body)`, to: `body !== reply.body` }],
    tests: OWN_REQUESTS,
    only: 'goes on after it',
  },
  {
    name: 'twice: take the refusal of a layer inside for a proof that the handler did nothing',
    file: 'src/http/twice.ts',
    edits: [{ from: `if (protect === 'handler') throw`, to: `if (protect !== protect) throw` }],
    tests: OWN_REQUESTS,
    only: 'charges, hands its request',
  },
  {
    name: 'twice: let a request with another body through',
    file: 'src/http/layers.ts',
    edits: [{ from: `Buffer.compare(body.bytes, other.bytes) === 0`, to: `true` }],
    tests: OWN_REQUESTS,
    only: 'another body',
  },
  {
    name: 'twice: let a handler ask itself without end',
    file: 'src/http/twice.ts',
    edits: [
      {
        from: ` && (layer.by !== by || carriers[0] === layer.request.carriers?.[0])`,
        to: ` && carriers !== null`,
      },
    ],
    tests: OWN_REQUESTS,
    only: 'the same body',
  },
  {
    name: 'twice: take what a handler has left alone for a part of it',
    file: 'src/http/layers.ts',
    edits: [{ from: `    mark.layer = null\n`, to: `` }],
    tests: NEW_REQUEST,
    only: 'left alone',
  },
  {
    name: 'paths: run one key once under each pattern of a handler',
    file: 'src/http/request.ts',
    edits: [{ from: `if (patterns.length > 1)`, to: `if (patterns.length > 100)` }],
    tests: SEVERAL_PATHS,
    only: 'none of them runs',
  },
  {
    name: 'paths: start with a list of paths that has no name',
    file: 'src/http/adapters/nest/routes.ts',
    edits: [{ from: `if (paths.size > 1)`, to: `if (paths.size > 100)` }],
    tests: SEVERAL_PATHS,
    only: 'refused at the start',
  },
  {
    name: 'paths: take a validator for the handler',
    file: 'src/http/adapters/hono/route.ts',
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
    file: 'src/record/value.ts',
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
    file: 'src/http/adapters/node/serve.ts',
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
