import { createServer } from 'node:http'
import { expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/node/index.ts'
import { openShop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { Client } from './client.ts'
import { listening } from './servers/listen.ts'

test('a server that closes its idle connections closes none whose answer is held back', async () => {
  const options = { account: () => 'acct_1', operation: 'things.create' }
  const layer = idempotent((await openShop()).open(), options, (_, response) => {
    response.end('done')
    // As close() does it, too. To the handler it has ended, and nothing has left yet.
    expect(response.writableEnded).toBe(true)
    server.closeIdleConnections()
  })
  const server = createServer(layer)
  const { port, close } = await listening(server)
  cleanUpLater(close)
  expect((await new Client(port).send({ method: 'POST', body: { a: 1 } })).text).toBe('done')
})
