// The ESM build, the CommonJS build and a second copy of the package in one process, each with objects of the others.
import { createRequire } from 'node:module'
import express from 'express'
import * as esm from 'onlyonce'
import * as esmExpress from 'onlyonce/express'

const require = createRequire(import.meta.url)
const cjs = require('onlyonce')
const cjsExpress = require('onlyonce/express')
const { postgres } = require('onlyonce/postgres')
const copy = createRequire(new URL('./copy/', import.meta.url))
const copied = copy('onlyonce')
const { idempotent } = copy('onlyonce/express')
const { locks } = copy('onlyonce/locks')
const { assertFence } = require('onlyonce/locks')
if (new Set([esm.onlyonce, cjs.onlyonce, copied.onlyonce]).size !== 3)
  throw new Error('there are not three copies')

const store = postgres({ connectionString: process.env.DATABASE_URL, schema: process.env.SCHEMA })
const once = esm.onlyonce({ store, secret: process.env.ONLYONCE_SECRET })
const app = express()
app.use(express.json({ verify: esmExpress.keepRawBody }))
let refused = 0
app.post('/orders', idempotent(once, { account: () => 'acct_1' }), (_request, response) =>
  response.status(201).json({}),
)
app.post('/refused', idempotent(once, { account: () => 'acct_1' }), () => {
  refused += 1
  throw cjs.notExecuted()
})
app.use(cjsExpress.hearNotExecuted)
app.use((_error, _request, response, _next) => response.status(503).json({}))
const pay = cjs.operation('copies.pay', (op) =>
  op.transaction('paid', async () => copied.reply(201, { paid: true })),
)
const lock = await locks(once).acquire('copies', { account: 'acct_1', ttlMs: 60_000 })

const server = app.listen(0, '127.0.0.1', async () => {
  const send = async (path) => {
    const headers = { 'idempotency-key': 'a-key-of-copies', 'content-type': 'application/json' }
    const url = `http://127.0.0.1:${server.address().port}${path}`
    const response = await fetch(url, { method: 'POST', headers, body: '{}' })
    return [response.status, response.headers.get('idempotent-replayed')]
  }
  const answers = [
    await send('/orders'),
    await send('/orders'),
    await send('/refused'),
    await send('/refused'),
  ]
  const run = await once.run(pay, { account: 'acct_1', key: 'a-key-of-copies', input: null })
  const call = { account: 'acct_1', operation: 'copies.fence', key: 'a-key-of-copies' }
  const fenced = await once.transaction(call, async (tx) => {
    await assertFence(tx, lock)
    return 'held'
  })
  const known = [cjs.notExecuted(), copied.notExecuted()].every((error) => error instanceof esm.OnlyonceError)
  console.log(JSON.stringify({ answers, refused, run: run.value, fenced: fenced.value, known }))
  await lock.release()
  server.close()
  server.closeAllConnections()
  await once.close()
})
