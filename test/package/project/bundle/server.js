// A protected route, and two requests with one key: what each bundle has to answer.
import { createServer } from 'node:http'
import { onlyonce } from 'onlyonce'
import { idempotent } from 'onlyonce/node'
import { postgres } from 'onlyonce/postgres'

const once = onlyonce({
  store: postgres({ connectionString: process.env.DATABASE_URL, schema: process.env.SCHEMA }),
  secret: process.env.ONLYONCE_SECRET,
})
const options = { account: () => 'acct_1', operation: 'orders.create', protect: 'transaction' }
const create = idempotent(once, options, async (_request, response, protection) => {
  const { rows } = await protection.tx.query('SELECT gen_random_uuid() AS id')
  response.writeHead(201, { 'content-type': 'application/json' })
  response.end(JSON.stringify(rows[0]))
})
const server = createServer(create)
server.listen(0, '127.0.0.1', async () => {
  const send = async () => {
    const url = `http://127.0.0.1:${server.address().port}/orders`
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'idempotency-key': 'a-key-of-the-bundle' },
    })
    return [response.status, response.headers.get('idempotent-replayed'), await response.text()]
  }
  const [first, second] = [await send(), await send()]
  console.log(
    JSON.stringify({ first: first.slice(0, 2), second: second.slice(0, 2), same: first[2] === second[2] }),
  )
  server.close()
  server.closeAllConnections()
  await once.close()
})
