/** The plan of the house, as far as a machine can check it. */

/** Which room of src/ may import which. A room that is not named here has no place yet: give it one. */
const BASE = ['thrown', 'copies', 'errors', 'limits', 'options']
const PURE = [...BASE, 'key', 'ring', 'fingerprint', 'record', 'seal']
const PLUMBING = [...PURE, 'failure', 'invalid', 'retry', 'standard-schema', 'value']
const FRONT = [...PLUMBING, 'store', 'observe', 'protect', 'explain', 'issuer', 'door', 'door-options']
const BACKGROUND = ['worker', 'outbox', 'lock', 'operator', 'workers']
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  thrown: [],
  copies: ['thrown'],
  version: [],
  'error-entry': [],
  'error-mistakes': ['error-entry'],
  'error-table': ['error-entry', 'error-mistakes'],
  errors: [...BASE, 'error-entry', 'error-mistakes', 'error-table'],
  limits: [...BASE, 'limits-of-webhooks'],
  'limits-of-webhooks': [],
  options: BASE,
  invalid: BASE,
  'standard-schema': [],
  key: BASE,
  ring: [...BASE, 'key'],
  fingerprint: [...BASE, 'key', 'ring'],
  record: [...BASE, 'key', 'fingerprint'],
  seal: [...BASE, 'key', 'ring', 'record'],
  failure: PURE,
  retry: PURE,
  value: [...PURE, 'failure'],
  store: PLUMBING,
  observe: [...PLUMBING, 'store'],
  protect: [...PLUMBING, 'store', 'observe'],
  explain: [...PLUMBING, 'store', 'explain-text'],
  'explain-text': [...BASE, 'record'],
  issuer: PURE,
  door: [...PLUMBING, 'store', 'observe', 'protect', 'explain', 'issuer'],
  'door-options': [...BASE, 'door'],
  requests: FRONT,
  catalog: [...BASE, 'protect'],
  durable: [...FRONT, 'requests', 'catalog'],
  background: [...PLUMBING, 'store', 'observe'],
  upkeep: [...FRONT, 'requests', 'background'],
  engine: [...FRONT, 'requests', 'durable', 'upkeep'],
  onlyonce: [...FRONT, 'requests', 'engine', 'version'],
  boundary: [...FRONT, 'requests', 'engine', 'onlyonce'],
  adapters: [...FRONT, 'onlyonce', 'boundary'],
  worker: [],
  outbox: [...FRONT, 'requests', 'engine', 'onlyonce', 'worker'],
  lock: [...FRONT, 'requests', 'engine', 'onlyonce'],
  signature: [...BASE, 'key'],
  operator: [...FRONT, 'requests', 'engine', 'onlyonce', 'signature'],
  workers: [...FRONT, 'requests', 'engine', 'onlyonce', 'signature', 'worker', 'outbox'],
  'limits/': [...PLUMBING, 'store', 'boundary'],
  webhooks: [...FRONT, 'requests', 'engine', 'onlyonce', 'worker', 'outbox'],
  index: [...FRONT, 'onlyonce', 'boundary', 'adapters', ...BACKGROUND],
  // Loaded by browsers: nothing of the server.
  client: [],
  react: ['client'],
  testing: [...FRONT, 'onlyonce', 'boundary', 'adapters', ...BACKGROUND, 'index'],
}

/** Optional packages, and the one file or folder that may import each; it is an export, and nobody imports it. */
export const OPTIONAL: Readonly<Record<string, string>> = {
  fastify: 'src/adapters/fastify/',
  'prom-client': 'src/observe/prometheus.ts',
  '@opentelemetry/api': 'src/observe/opentelemetry.ts',
  hono: 'src/adapters/hono/',
  '@nestjs/common': 'src/adapters/nest/',
  '@nestjs/core': 'src/adapters/nest/',
  rxjs: 'src/adapters/nest/',
  'rate-limiter-flexible': 'src/limits/',
  react: 'src/react/',
}

/** Where thrown values are read: the place itself, one that catches every error, and what meets no errors but those of Node. */
export const READS_THROWN = [
  'src/thrown.ts',
  'src/failure.ts',
  'src/webhooks/post.ts',
  'src/store/embedded/',
  'src/testing/',
  'src/client/thrown.ts',
]
