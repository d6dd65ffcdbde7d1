import { OnlyonceError } from 'onlyonce'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { waitUntil } from '../../../test/setup/wait.ts'
import { answer, type Script, type ScriptedServer, startScriptedServer } from '../test/scripted-server.ts'
import { apiError, cardError, HELD, intent, KEY, ORDER, OTHER_KEY } from '../test/stripe-objects.ts'
import type { AuthorizeOrder, Gateway } from './index.ts'
import { stripeGateway } from './stripe.ts'

let server: ScriptedServer
let gateway: Gateway
let impatient: Gateway
const unhandled: unknown[] = []
const note = (reason: unknown) => unhandled.push(reason)

beforeAll(async () => {
  process.on('unhandledRejection', note)
  server = await startScriptedServer(() => undefined)
  gateway = open(5_000)
  // For what is never answered. All else has time, however busy the machine is.
  impatient = open(700)
})
beforeEach(() => {
  server.seen.length = 0
})
afterAll(() => {
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
})

function open(timeoutMs: number): Gateway {
  const at = { host: '127.0.0.1', protocol: 'http', port: server.port } as const
  return stripeGateway({ secretKey: 'sk_test_1', mode: 'test', ...at, timeoutMs })
}

const OURS = intent().metadata
const whole = answer(200, intent())
const html = (status: number) =>
  answer(status, '<html><body>sk_test_1 4242424242424242</body></html>', { 'Content-Type': 'text/html' })

/** Takes the connection away without a goodbye. */
const reset: Script = (_, socket) => {
  socket.resetAndDestroy()
  return undefined
}
const cutOff =
  (bytes: string): Script =>
  (_, socket) => {
    socket.end(bytes)
    return undefined
  }

const ROWS: [what: string, script: Script | string, order?: AuthorizeOrder][] = [
  ['a reset after it was sent', reset],
  ['a connection that is closed', cutOff('')],
  ['no answer', () => undefined],
  ['headers, and then nothing', whole.slice(0, whole.indexOf('\r\n\r\n') + 10)],
  [
    'headers, and then a reset',
    (_, socket) => {
      socket.write(whole.slice(0, whole.indexOf('\r\n\r\n') + 10), () => socket.resetAndDestroy())
      return undefined
    },
  ],
  ['a body that is cut off', cutOff(whole.slice(0, -20))],
  [
    'JSON that is cut off, of no stated length',
    cutOff(`HTTP/1.1 200 OK\r\n\r\n${JSON.stringify(intent()).slice(0, -9)}`),
  ],
  ['what is not HTTP', cutOff('SSH-2.0-OpenSSH_9.2\r\n')],
  ['HTML with 200', html(200)],
  ['HTML with 502', html(502)],
  ['HTML with 403, from whoever stands between', html(403)],
  ['HTML with 429, from whoever stands between', html(429)],
  ['an empty body', answer(200, '')],
  ['null', answer(200, 'null')],
  ['a number', answer(200, '5')],
  ['a text', answer(200, '"ok"')],
  ['a list', answer(200, [intent()])],
  ['another object', answer(200, { object: 'charge', id: 'ch_1' })],
  ['a redirect', answer(302, intent(), { Location: '/elsewhere' })],
  ['a redirect to an error', answer(307, cardError())],
  ['500 with an error', answer(500, { error: { type: 'api_error', message: 'sk_test_1' } })],
  ['500 with the object', answer(500, intent())],
  ['200 with an error', answer(200, cardError())],
  ['a decline of what was taken', answer(402, cardError({ payment_intent: intent() }))],
  ['503', answer(503, { error: { type: 'api_error' } })],
  ['424', answer(424, { error: { type: 'api_error' } })],
  ['a stored 500', answer(500, { error: { type: 'api_error' } }, { 'Idempotent-Replayed': 'true' })],
  ['a stored 429', answer(429, apiError({}), { 'Idempotent-Replayed': 'true' })],
  ['a key in use', answer(409, { error: { type: 'idempotency_error', code: 'idempotency_key_in_use' } })],
  ['the same key, other parameters', answer(400, { error: { type: 'idempotency_error' } })],
  ['402 that is no card error', answer(402, apiError({}))],
  ['an error in words', answer(400, { error: 'invalid_grant', error_description: 'no' })],
  ['another amount', answer(200, intent({ amount: 1_001, amount_received: 1_001 }))],
  ['less than all', answer(200, intent({ amount_received: 999 }))],
  ['another currency', answer(200, intent({ currency: 'usd' }))],
  ['another key', answer(200, intent({ metadata: { ...OURS, onlyonce_key: OTHER_KEY } }))],
  ['another payment', answer(200, intent({ metadata: { ...OURS, payment: 'pay_2' } }))],
  ['another account', answer(200, intent({ metadata: { ...OURS, account: 'acct_2:test' } }))],
  ['no metadata', answer(200, intent({ metadata: null }))],
  ['the other mode', answer(200, intent({ livemode: true }))],
  ['money that was only to be held', answer(200, intent()), HELD],
  ['money that was taken from what was held', answer(200, intent({ capture_method: 'manual' })), HELD],
  ['what is still under way', answer(200, intent({ status: 'processing' }))],
  ['a status that nobody knows', answer(200, intent({ status: 'dreaming' }))],
  [
    'an answer without an end',
    (_, socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const more = () => socket.writable && socket.write('x'.repeat(1024 ** 2), more)
      more()
      return undefined
    },
  ],
]

const NEVER_ANSWERED = ['no answer', 'headers, and then nothing']

describe('in doubt', () => {
  it.each(ROWS)('%s', async (...[what, script, order = ORDER]) => {
    server.script = typeof script === 'string' ? () => script : script
    const by = NEVER_ANSWERED.includes(what) ? impatient : gateway
    const error = await by.authorize(order, { key: KEY, signal: new AbortController().signal }).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(Error)
    expect(error).not.toBeInstanceOf(OnlyonceError)
    expect((error as Error).message).not.toMatch(/sk_test|4242/)
    // Nobody sends it again behind the library's back.
    expect(server.seen).toHaveLength(1)
  })

  it('a call that is given up while it waits, and its connection is closed', async () => {
    const givenUp = new AbortController()
    let closed = false
    server.script = (_, socket) => {
      socket.once('close', () => {
        closed = true
      })
      givenUp.abort()
      return undefined
    }
    const call = gateway.authorize(ORDER, { key: KEY, signal: givenUp.signal })
    await expect(call).rejects.toThrow('it was given up')
    await waitUntil('the connection is closed', async () => closed)
  })
})
