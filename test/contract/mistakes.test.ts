import { expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import type { IdempotencyContext } from '../../src/http/index.ts'
import { onlyonce, operation } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { catchError, SECRET } from './shop.ts'

const account = () => 'acct_1'

function request(key: string): Request {
  const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
  return new Request('http://localhost/charges', { method: 'POST', headers, body: '{}' })
}

/** Resolves to the warnings of one kind that the process has given meanwhile. */
async function warningsOf(during: () => Promise<unknown>): Promise<string[]> {
  const warnings: string[] = []
  const note = (warning: Error) => {
    if (warning.name === 'OnlyonceMistakeWarning') warnings.push(warning.message)
  }
  process.on('warning', note)
  await during()
  // Warnings are told in the next turn.
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', note)
  return warnings
}

test('a mistake of the service is told to its developer once for each route, and what to do about it to no client', async () => {
  const heard = makeRecorder()
  const once = onlyonce({ store: memory(), secret: SECRET, observe: heard })
  const routes = ['charges.create', 'refunds.create'].map((operation) =>
    idempotent(once, { account, operation }, () => Response.json({}, { status: 201 })),
  )
  const told = await warningsOf(async () => {
    for (const route of [...routes, ...routes]) {
      const read = request('a-key-of-some-length')
      await read.text()
      const answer = await route(read)
      const problem = (await answer.json()) as Record<string, string>
      expect(problem).toMatchObject({
        code: 'raw_body_missing',
        status: 500,
        retryable: true,
        executed: 'not_by_this_request',
      })
      expect(problem.detail).toContain('Send the same request with the same key again')
      expect(problem.detail).not.toMatch(/parser|keepRawBody|fingerprint/)
    }
  })
  expect(told.map((warning) => warning.split(':')[0])).toEqual(['charges.create', 'refunds.create'])
  expect(told[0]).toContain('raw_body_missing: The body was read before')
  expect(heard.of('mistake').map(({ route, code, first }) => [route, code, first])).toEqual([
    ['charges.create', 'raw_body_missing', true],
    ['refunds.create', 'raw_body_missing', true],
    ['charges.create', 'raw_body_missing', false],
    ['refunds.create', 'raw_body_missing', false],
  ])
  expect(heard.of('mistake')[0]?.message).toContain('Put the layer before the body parser')
})

test('a handler that asks for the transaction of a route without one is told what the route lacks', async () => {
  const once = onlyonce({ store: memory(), secret: SECRET })
  const route = idempotent(once, { account, operation: 'charges.create' }, (_, { idempotency: own }) =>
    Response.json({ tx: (own as IdempotencyContext<unknown>).tx !== undefined }),
  )
  const error = await catchError(route(request('a-key-of-some-length')))
  expect(error).toMatchObject({
    code: 'option_invalid',
    message: expect.stringContaining("Pass protect: 'transaction'"),
  })
})

test('a key that is sent with a method that the layer leaves out is told once, unless the route names its methods', async () => {
  const once = onlyonce({ store: memory(), secret: SECRET })
  const put = (key?: string) =>
    new Request('http://localhost/charges', {
      method: 'PUT',
      ...(key !== undefined && { headers: { 'idempotency-key': key } }),
    })
  const unsaid = idempotent(once, { account, operation: 'charges.put' }, () => Response.json({}))
  const methods = ['POST']
  const said = idempotent(once, { account, operation: 'charges.post', methods }, () => Response.json({}))
  const told = await warningsOf(async () => {
    await unsaid(put())
    await said(put('a-key-of-some-length'))
  })
  expect(told).toEqual([])
  const then = await warningsOf(async () => {
    for (let i = 0; i < 2; i++) await unsaid(put('a-key-of-some-length'))
  })
  expect(then).toEqual([expect.stringMatching(/^charges\.put: option_invalid: .*key with PUT.*\['PUT'\]/)])
})

test('what is wrong with a request is no mistake of the service', async () => {
  const heard = makeRecorder()
  const once = onlyonce({ store: memory(), secret: SECRET, observe: heard })
  const route = idempotent(once, { account, operation: 'charges.create' }, () => Response.json({}))
  const told = await warningsOf(async () => {
    expect((await route(request(''))).status).toBe(400)
    expect((await route(request('a-key-of-some-length'))).status).toBe(200)
  })
  expect([told, heard.of('mistake')]).toEqual([[], []])
})

test('an operation on a store that keeps none is refused when it is mounted, not at its first request', async () => {
  const charge = operation('charges.create', async () => 1)
  const once = onlyonce({ store: memory(), secret: SECRET })
  const refusal = { code: 'option_invalid', message: expect.stringContaining('keeps no operations') }
  const mount = async () => idempotent(once, { account, operation: charge })
  expect(await catchError(mount())).toMatchObject(refusal)
  const open = async () => onlyonce({ store: memory(), secret: SECRET, operations: [charge] })
  expect(await catchError(open())).toMatchObject(refusal)
  expect(
    await catchError(once.run(charge, { account: 'acct_1', key: 'a-key-of-some-length', input: 1 })),
  ).toMatchObject(refusal)
})
