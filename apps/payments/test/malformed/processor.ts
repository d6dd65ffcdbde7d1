import { signWebhook } from 'onlyonce/webhooks'
import { GATEWAY_SECRET, type Row } from './site.ts'

const EVENT = JSON.stringify({ id: 'evt_1', type: 'payment_intent.succeeded', data: { object: {} } })
const now = Math.floor(Date.now() / 1_000)
const DAY_MS = 86_400_000

const signed = (body: string | Buffer, atMs = Date.now(), secrets = GATEWAY_SECRET) =>
  signWebhook({ scheme: 'stripe', body: Buffer.from(body), secrets, timestamp: atMs })['stripe-signature']!

const told = (
  what: string,
  signature: string | null,
  code: string,
  body: string | Buffer = EVENT,
  status = 400,
): Row => [
  what,
  {
    path: '/webhooks/stripe',
    apiKey: null,
    body,
    headers: signature === null ? {} : { 'stripe-signature': signature },
  },
  status,
  code,
]

/** What pretends to come from the processor, and what comes from it and is nothing. */
export const processor: readonly Row[] = [
  told('no signature', null, 'webhook_unsigned'),
  told('an empty signature', '', 'webhook_unsigned'),
  told('a signature of another kind', 'v1,abc', 'webhook_unsigned'),
  told('no time', 'v1=abc', 'webhook_unsigned'),
  told('two times', `t=${now},t=${now},v1=abc`, 'webhook_unsigned'),
  told('a time alone', `t=${now}`, 'webhook_unsigned'),
  told('an older form of signature', `t=${now},v0=abc`, 'webhook_unsigned'),
  told('a time that is no number', 't=now,v1=abc', 'webhook_timestamp_invalid'),
  told('a time with an exponent', 't=1e9,v1=abc', 'webhook_timestamp_invalid'),
  told('a negative time', 't=-1,v1=abc', 'webhook_timestamp_invalid'),
  told('a signature that is short', `t=${now},v1=abc`, 'webhook_signature_invalid'),
  told('a signature of zeros', `t=${now},v1=${'0'.repeat(64)}`, 'webhook_signature_invalid'),
  told(
    'a signature in capitals',
    signed(EVENT).toUpperCase().replace('T=', 't=').replace('V1=', 'v1='),
    'webhook_signature_invalid',
  ),
  told(
    'a signature by another secret',
    signed(EVENT, Date.now(), `whsec_${'b'.repeat(32)}`),
    'webhook_signature_invalid',
  ),
  told('a signature of other bytes', signed(`${EVENT} `), 'webhook_signature_invalid'),
  told('yesterday', signed(EVENT, Date.now() - DAY_MS), 'webhook_too_old'),
  told('tomorrow', signed(EVENT, Date.now() + DAY_MS), 'webhook_too_new'),
  told('no JSON', signed('event'), 'webhook_payload_invalid', 'event'),
  told('null', signed('null'), 'webhook_payload_invalid', 'null'),
  told('no id', signed('{}'), 'webhook_payload_invalid', '{}'),
  told('an empty id', signed('{"id":""}'), 'webhook_payload_invalid', '{"id":""}'),
  told('an id that is a number', signed('{"id":1}'), 'webhook_payload_invalid', '{"id":1}'),
  told('NUL in its id', signed('{"id":"a\\u0000"}'), 'webhook_payload_invalid', '{"id":"a\\u0000"}'),
  told(
    'half a surrogate pair in its id',
    signed('{"id":"\\ud800"}'),
    'webhook_payload_invalid',
    '{"id":"\\ud800"}',
  ),
  told(
    'a very long id',
    signed(`{"id":"${'i'.repeat(5_000)}"}`),
    'webhook_payload_invalid',
    `{"id":"${'i'.repeat(5_000)}"}`,
  ),
  told('too much', null, 'body_too_large', ' '.repeat(1_100_000), 413),
  ['another method', { method: 'GET', path: '/webhooks/stripe' }, 405, 'method_not_allowed'],
  ['another processor', { path: '/webhooks/adyen', apiKey: null, body: EVENT }, 404, 'not_found'],
]
