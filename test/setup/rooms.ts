/** The plan of the house, as far as a machine can check it. */

/** Which room of src/ may import which. A room that is not named here has no place yet: give it one. */
const PURE = ['core', 'key', 'fingerprint', 'record', 'seal']
const INSIDE = [...PURE, 'store', 'observe', 'protect', 'operation']
const BESIDE = ['outbox', 'locks', 'operator', 'workers']
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  key: ['core'],
  fingerprint: ['core', 'key'],
  record: ['core', 'key', 'fingerprint'],
  seal: ['core', 'key', 'record'],
  store: PURE,
  observe: [...PURE, 'store'],
  protect: [...PURE, 'store', 'observe'],
  operation: [...PURE, 'store', 'observe', 'protect'],
  onlyonce: INSIDE,
  http: [...INSIDE, 'onlyonce'],
  'http/adapters': [...INSIDE, 'onlyonce', 'http'],
  'rate-limits': [...PURE, 'store', 'http'],
  orm: [...PURE, 'store'],
  locks: [...INSIDE, 'onlyonce'],
  operator: [...INSIDE, 'onlyonce'],
  outbox: [...INSIDE, 'onlyonce'],
  workers: [...INSIDE, 'onlyonce', 'outbox'],
  webhooks: [...INSIDE, 'onlyonce', 'outbox'],
  index: [...INSIDE, 'onlyonce', 'http', ...BESIDE],
  // Doors of rooms whose own index is for the inside.
  entries: [...INSIDE, 'onlyonce', 'http'],
  testing: [...INSIDE, 'onlyonce', 'http', 'http/adapters', ...BESIDE, 'index'],
  cli: [...INSIDE, 'onlyonce', 'webhooks', ...BESIDE],
  // Loaded by browsers: nothing of the server.
  client: [],
  react: ['client'],
}

/** Optional packages, and the one file or folder that may import each; it is an export, and nobody imports it. */
export const OPTIONAL: Readonly<Record<string, string>> = {
  fastify: 'src/http/adapters/fastify/',
  'prom-client': 'src/observe/prometheus.ts',
  '@opentelemetry/api': 'src/observe/opentelemetry.ts',
  hono: 'src/http/adapters/hono/',
  '@nestjs/common': 'src/http/adapters/nest/',
  '@nestjs/core': 'src/http/adapters/nest/',
  rxjs: 'src/http/adapters/nest/',
  'rate-limiter-flexible': 'src/rate-limits/',
  react: 'src/react/',
}

/** Where thrown values are read: the place itself, one that catches every error, and what meets no errors but those of Node. */
export const READS_THROWN = [
  'src/core/thrown.ts',
  'src/record/failure.ts',
  'src/webhooks/post.ts',
  'src/store/embedded/',
  'src/testing/',
  'src/client/thrown.ts',
]
