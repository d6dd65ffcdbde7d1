import { createServer } from 'node:http'
import { PassThrough } from 'node:stream'
import express, { type Express, type NextFunction, type Request, type Response } from 'express'
import { beforeAll, expect, test } from 'vitest'
import { hearNotExecuted, idempotent } from '../../src/http/adapters/express/index.ts'
import { notExecuted } from '../../src/index.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { waitUntil } from '../setup/wait.ts'
import { Client } from './client.ts'
import { expectProblem, expectReplay } from './expectations.ts'
import { listening } from './servers/listen.ts'

/** What an application in Express has around the layer and behind it, beyond what all frameworks share. */
let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

const account = () => 'acct_1'

async function start(build: (app: Express) => void): Promise<Client> {
  const app = express()
  app.set('env', 'test')
  build(app)
  const server = await listening(createServer(app))
  cleanUpLater(() => server.close())
  return new Client(server.port)
}

async function twice(client: Client, path = '/things') {
  const key = crypto.randomUUID()
  return { first: await client.send({ key, path }), again: await client.send({ key, path }) }
}

/** As on-headers does it: sessions and compression add a header at the last moment. */
function addHeaderAtTheEnd(name: string) {
  return (_: Request, response: Response, next: NextFunction) => {
    const { writeHead } = response
    response.writeHead = function patched(this: Response, ...given: unknown[]) {
      this.setHeader(name, 'set')
      return Reflect.apply(writeHead, this, given)
    } as Response['writeHead']
    next()
  }
}

test('layers before and behind this one still add their headers at the last moment', async () => {
  const once = shop.open()
  const client = await start((app) => {
    app.use(addHeaderAtTheEnd('x-outer'))
    app.post('/things', idempotent(once, { account }), addHeaderAtTheEnd('x-inner'), (_, response) => {
      response.json({ at: performance.now() })
    })
  })
  const { first, again } = await twice(client)
  expect(first.headers).toMatchObject({ 'x-outer': 'set', 'x-inner': 'set' })
  expect(again.headers['x-outer']).toBe('set')
  expectReplay(first, again)
})

test('a second answer is refused as ever, and changes nothing', async () => {
  const once = shop.open()
  const errors: unknown[] = []
  const client = await start((app) => {
    app.post('/things', idempotent(once, { account }), (_, response) => {
      response.status(201).json({ first: true })
      response.end('more')
      response.statusCode = 500
      try {
        response.json({ second: true })
      } catch (error) {
        errors.push((error as { code?: string }).code)
      }
    })
  })
  const { first, again } = await twice(client)
  expect([first.status, first.json()]).toEqual([201, { first: true }])
  expectReplay(first, again)
  expect(errors).toEqual(['ERR_HTTP_HEADERS_SENT'])
})

test('an error after the answer: the retry is given the answer', async () => {
  const once = shop.open()
  let runs = 0
  const client = await start((app) => {
    app.post('/things', idempotent(once, { account }), (_, response) => {
      runs += 1
      response.status(201).json({ runs })
      throw new Error('too late')
    })
  })
  const key = crypto.randomUUID()
  // Express closes the connection on such an error.
  await client.send({ key }).catch(() => undefined)
  let again = await client.send({ key })
  await waitUntil('the answer is stored', async () => {
    if (again.status === 409) again = await client.send({ key })
    return again.status !== 409
  })
  expect([again.status, again.json(), again.headers['idempotent-replayed']]).toEqual([
    201,
    { runs: 1 },
    'true',
  ])
})

test('writeHead takes its headers in every form, and they are replayed', async () => {
  const once = shop.open()
  const forms: Record<string, unknown[]> = {
    object: [{ location: '/a', 'x-none': undefined }],
    reason: ['Made', { location: '/a' }],
    flat: [['location', '/a', 'set-cookie', 'a=1', 'set-cookie', 'b=2']],
  }
  const client = await start((app) => {
    app.post('/things/:form', idempotent(once, { account }), (request, response) => {
      Reflect.apply(response.writeHead, response, [201, ...forms[request.params.form as string]!])
      response.end('done')
    })
  })
  for (const form of Object.keys(forms)) {
    const { first, again } = await twice(client, `/things/${form}`)
    expect([first.status, first.headers.location, first.text]).toEqual([201, '/a', 'done'])
    if (form === 'flat') expect(first.headers['set-cookie']).toEqual(['a=1', 'b=2'])
    expectReplay(first, again)
  }
})

test('a request is still a stream of events: it can be piped', async () => {
  const once = shop.open()
  const client = await start((app) => {
    app.post('/things', idempotent(once, { account }), (request, response) => {
      request.pipe(new PassThrough()).pipe(response)
    })
  })
  const key = crypto.randomUUID()
  const first = await client.send({ key, body: { piped: true } })
  expect(first.json()).toEqual({ piped: true })
  expectReplay(first, await client.send({ key, body: { piped: true } }))
})

test('files are sent and replayed', async () => {
  const once = shop.open()
  const client = await start((app) => {
    app.post('/things', idempotent(once, { account }), (_, response) => {
      response.sendFile('package.json', { root: process.cwd() })
    })
  })
  const { first, again } = await twice(client)
  expect(first.json().name).toBe('onlyonce')
  expectReplay(first, again)
})

test('mounted before all routes: paths are told apart, GET passes, notExecuted() is heard', async () => {
  const once = shop.open()
  let runs = 0
  const client = await start((app) => {
    app.use('/v1', idempotent(once, { account, operation: 'anything' }))
    app.post('/v1/things/:id', (_, response) => {
      runs += 1
      if (runs === 1) throw notExecuted()
      response.json({ runs })
    })
    app.get('/v1/things', (_, response) => void response.json({ free: true }))
    app.use(hearNotExecuted)
  })
  const key = crypto.randomUUID()
  expectProblem(await client.send({ key, path: '/v1/things/a' }), 'not_executed')
  expect((await client.send({ key, path: '/v1/things/a' })).json()).toEqual({ runs: 2 })
  expectProblem(await client.send({ key, path: '/v1/things/b' }), 'key_reused')
  expect((await client.send({ method: 'GET', path: '/v1/things', body: null })).json()).toEqual({
    free: true,
  })
})

test.each(['handler', 'transaction'] as const)(
  'a throw is heard before the error handlers of the route: %s',
  async (protect) => {
    const once = shop.open()
    let runs = 0
    const client = await start((app) => {
      const refuse = (_: unknown, __: Request, response: Response, ___: NextFunction) =>
        void response.status(422).json({ refused: true })
      const pass = (error: unknown, _: Request, __: Response, next: NextFunction) => next(error)
      const handle = (_: Request, response: Response) => {
        runs += 1
        if (runs === 1) throw protect === 'transaction' ? new Error('boom') : notExecuted()
        response.json({ runs })
      }
      app.post('/things', idempotent(once, { account, protect }), handle, pass, refuse)
    })
    const { first, again } = await twice(client)
    // notExecuted() is answered by the layer; any other error is what the error handlers of the route make of it.
    expect([first.status, again.json()]).toEqual([protect === 'handler' ? 503 : 422, { runs: 2 }])
  },
)

test('a route that is no text, and one with a wildcard, tell their resources apart', async () => {
  const once = shop.open()
  const layer = idempotent(once, { account, operation: 'files.touch' })
  const client = await start((app) => {
    const done = (_: Request, response: Response) => void response.json({ at: performance.now() })
    app.post(/^\/files\/(\w+)$/, layer, done)
    app.post('/trees/*path', layer, done)
  })
  for (const [one, other] of [
    ['/files/a', '/files/b'],
    ['/trees/a/b', '/trees/a/c'],
  ] as const) {
    const key = crypto.randomUUID()
    const first = await client.send({ key, path: one })
    expect(first.status).toBe(200)
    expectProblem(await client.send({ key, path: other }), 'key_reused')
    expectReplay(first, await client.send({ key, path: one }))
  }
})

test('a mistake in finding the account is an error of the application, and nothing is claimed', async () => {
  const once = shop.open()
  const broken = () => Promise.reject(new Error('no session store'))
  const client = await start((app) => {
    app.post('/things', idempotent(once, { account: broken }), (_, response) => void response.end())
  })
  const { first, again } = await twice(client)
  expect([first.status, again.status]).toEqual([500, 500])
  expect(again.headers['idempotent-replayed']).toBeUndefined()
})
