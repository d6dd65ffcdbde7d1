/** The sandbox processor as a process of its own, flooded with what it expects and with what it does not. */
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { beforeAll, expect, test } from 'vitest'
import { type GatewayProcess, startGateway } from '../../apps/gateway/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { type Answered, type Ask, type Flooded, flood, send } from './flood.ts'
import { tally } from './judge.ts'

const FLOOD_MS = 2_500
const CONNECTIONS = 150
const STRANGERS = 50
const ANSWER_MAX_MS = 20_000
/** What Stripe answers with, as far as the sandbox speaks its protocol. */
const STATUSES = [200, 400, 401, 402, 404, 405, 409, 413]

const form = { 'content-type': 'application/x-www-form-urlencoded' }
const good: Ask = {
  path: '/v1/payment_intents',
  headers: form,
  body: 'amount=1200&currency=eur&payment_method=pm_card_visa&confirm=true',
}

/** Each of them is answered, and none of them is worth a process. */
const WRONG: readonly Ask[] = [
  { ...good, body: '' },
  { ...good, body: '%' },
  { ...good, body: 'amount=%E0%A4%A&currency=eur' },
  { ...good, body: 'amount[=1&a]b=2&metadata[__proto__][x]=1&[]=3&metadata=text' },
  { ...good, body: `amount=${'9'.repeat(400)}&currency=eur` },
  { ...good, body: 'metadata[a]='.repeat(3_000) },
  { ...good, body: randomBytes(2_000).toString('latin1') },
  { ...good, body: 'x'.repeat(70_000) },
  { ...good, path: '/v1/payment_intents/%/capture' },
  { ...good, path: '/v1/payment_intents/pi_none/capture' },
  { ...good, path: '/v1/nothing' },
  { ...good, method: 'DELETE' },
  { ...good, method: 'GET', path: '/v1/payment_intents/search?query=%', body: '' },
  { ...good, method: 'GET', path: `/v1/payment_intents/search?query=${'('.repeat(500)}`, body: '' },
  { ...good, method: 'GET', path: '/v1/charges?limit=x&created[gte]=y&starting_after=z', body: '' },
  { ...good, path: '/_sandbox/faults', body: '[{"fault":"no such fault"}]' },
  { ...good, path: '/_sandbox/faults', body: '[null]' },
  { ...good, path: '/_sandbox/clock', body: '{"advance_ms":"x"}' },
  { ...good, path: '/_sandbox/release', body: '{"key":5}' },
  { ...good, path: '/_sandbox/%', body: '{' },
]

let gateway: GatewayProcess
let flooded: Flooded

beforeAll(async () => {
  gateway = await startGateway()
  cleanUpLater(() => gateway.stop())
  const over = AbortSignal.timeout(FLOOD_MS)
  const ask = (nth: number) => withKey(nth % 2 === 0 ? good : WRONG[(nth >> 1) % WRONG.length]!)
  const strangers = Array.from({ length: STRANGERS }, (_, nth) => speakNoHttp(nth, over))
  const { port } = gateway
  const pauseMs = 50
  flooded = await flood({ port, connections: CONNECTIONS, over, answerMaxMs: ANSWER_MAX_MS, pauseMs, ask })
  await Promise.all(strangers)
}, 60_000)

test('it lives, and goes on', async () => {
  const { pid } = gateway
  const answer = (await send(gateway.port, withKey(good), ANSWER_MAX_MS)) as Answered
  expect(answer).toMatchObject({ status: 200, type: 'application/json' })
  expect(gateway.pid).toBe(pid)
})

test('every request was answered in the words of the protocol', () => {
  const wrong = flooded.answers.filter((answer) => !isOfTheProtocol(answer))
  expect(
    { wrong, unanswered: flooded.unanswered, closed: flooded.closed },
    JSON.stringify(tally(flooded)),
  ).toEqual({ wrong: [], unanswered: 0, closed: 0 })
})

function isOfTheProtocol({ status, type, text }: Answered): boolean {
  if (!STATUSES.includes(status) || type !== 'application/json') return false
  const { error } = JSON.parse(text) as { error?: { type?: unknown } }
  return status === 200 || typeof error?.type === 'string'
}

function withKey(asked: Ask): Ask {
  return { ...asked, headers: { ...asked.headers, authorization: `Bearer ${gateway.apiKey}` } }
}

/** Half a request, none at all, one that is cut off in its body, and bytes by chance: again and again. */
async function speakNoHttp(nth: number, over: AbortSignal): Promise<void> {
  const said = [
    'POST /v1/payment_intents HTTP/1.1\r\nHost: a\r\n',
    'POST /v1/payment_intents HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\namount=1',
    randomBytes(300),
    'GET / HTTP/9.9\r\n\r\n',
  ][nth % 4]!
  while (!over.aborted) {
    await new Promise<void>((resolve) => {
      const socket = connect(gateway.port, '127.0.0.1', () => {
        socket.write(said)
        setTimeout(() => socket.resetAndDestroy(), 30)
      })
      socket.on('error', () => {}).on('close', () => resolve())
    })
  }
}
