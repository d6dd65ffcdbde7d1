import { TEST_OPS_TOKEN } from '../service.ts'
import { type Given, type Row, type Site, TEA, wire } from './site.ts'

const BODY = JSON.stringify(TEA)

/** Who asks, in all the ways that are none. */
export function credentials({ shop, other }: Site): Row[] {
  const { apiKey } = shop
  const swapped = apiKey.replace(shop.accountId, other.accountId)
  const header = (what: string, authorization: string): Row => [
    what,
    { apiKey: null, headers: { authorization }, body: TEA },
    401,
    'unauthorized',
  ]
  return [
    ['none', { apiKey: null, body: TEA }, 401, 'unauthorized'],
    header('an empty one', ''),
    header('a scheme alone', 'Bearer'),
    header('a scheme and a space', 'Bearer '),
    header('no scheme', apiKey),
    header('another scheme', `Basic ${Buffer.from(`${apiKey}:`).toString('base64')}`),
    header('the scheme of Stripe', `Token ${apiKey}`),
    header('two spaces', `Bearer  ${apiKey}`),
    header('a tab', `Bearer\t${apiKey}`),
    header('two keys', `Bearer ${apiKey} ${apiKey}`),
    header('two schemes in a list', `Bearer ${apiKey}, Bearer ${apiKey}`),
    header('a key in quotes', `Bearer "${apiKey}"`),
    header('a key that is cut', `Bearer ${apiKey.slice(0, -1)}`),
    header('a key that is longer', `Bearer ${apiKey}A`),
    header('a key in capitals', `Bearer ${apiKey.toUpperCase()}`),
    header('a key of the other mode', `Bearer ${apiKey.replace('_test_', '_live_')}`),
    header('a key for another account', `Bearer ${swapped}`),
    header('a very long key', `Bearer ${'k'.repeat(10_000)}`),
    header('the token of the operators', `Bearer ${TEST_OPS_TOKEN}`),
    header('SQL', "Bearer ' OR 1=1 --"),
    header('letters outside ASCII', 'Bearer sk_test_\xe9'),
  ]
}

/** What the body is said to be. */
export function contentTypes(site: Site): Row[] {
  const type = (contentType: string): Row => [
    contentType,
    { headers: { 'content-type': contentType }, body: BODY },
    415,
    'media_type_unsupported',
  ]
  const encoding = (contentEncoding: string): Row => [
    `encoded: ${contentEncoding}`,
    { headers: { 'content-encoding': contentEncoding }, body: BODY },
    415,
    'media_type_unsupported',
  ]
  const written = (what: string, value: string | readonly string[] | null, status: number, code: string) =>
    [what, { raw: wire(site, { headers: { 'Content-Type': value } }) }, status, code] as const
  return [
    ...[
      'text/plain',
      'text/json',
      'text/html; charset=utf-8',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=a',
      'application/octet-stream',
      'application/xml',
      'application/problem+json',
      'application/vnd.api+json',
      'application/jsonx',
      'application/json5',
      'application/*',
      'json',
      '/',
      'application/json, application/json',
      'application/json; charset=latin1',
      'application/json; charset=utf-16',
      'application/json; charset=utf-7',
      'application/json; charset="us-ascii"',
      'application/json; a=b; charset=iso-8859-1',
      'application/json; charset=utf-8; charset=latin1',
      'application/json; charset=',
    ].map(type),
    written('none', null, 415, 'media_type_unsupported'),
    written('an empty one', '', 415, 'media_type_unsupported'),
    written('two of them', ['application/json', 'text/plain'], 400, 'invalid_request'),
    written('one of them twice', ['application/json', 'application/json'], 400, 'invalid_request'),
    ...['gzip', 'deflate', 'br', 'gzip, identity', 'nonsense'].map(encoding),
  ]
}

/** Messages that two readers could understand in two ways, and such as nobody could. */
export function messages(site: Site): Row[] {
  const raw = (what: string, given: string | Buffer, status = 400, code = 'invalid_request'): Row => [
    what,
    { raw: given },
    status,
    code,
  ]
  const cut = (what: string, given: Omit<Given, 'hangsUp'>): Row => [
    what,
    { ...given, hangsUp: true },
    400,
    'invalid_request',
  ]
  const chunked = { 'Content-Length': null, 'Transfer-Encoding': 'chunked' }
  const whole = `${Buffer.byteLength(BODY).toString(16)}\r\n${BODY}\r\n0\r\n\r\n`
  const start = (line: string) => wire(site, { start: line })
  return [
    raw('a body with GET', start('GET /v1/payments HTTP/1.1')),
    raw('chunks with GET', wire(site, { start: 'GET /v1/balances HTTP/1.1', headers: chunked, body: whole })),
    raw('a length and chunks', wire(site, { headers: { 'Transfer-Encoding': 'chunked' }, body: whole })),
    raw(
      'chunks and a length behind them',
      wire(site, { headers: { ...chunked, 'content-length': '5' }, body: whole }),
    ),
    raw('two lengths', wire(site, { headers: { 'Content-Length': ['5', '6'] } })),
    raw('two lengths that are the same', wire(site, { headers: { 'Content-Length': ['77', '77'] } })),
    raw('a list of lengths', wire(site, { headers: { 'Content-Length': '77, 77' } })),
    raw('a negative length', wire(site, { headers: { 'Content-Length': '-1' } })),
    raw('a length with a sign', wire(site, { headers: { 'Content-Length': '+77' } })),
    raw('a length in hexadecimal', wire(site, { headers: { 'Content-Length': '0x4d' } })),
    raw('a length that is a fraction', wire(site, { headers: { 'Content-Length': '77.0' } })),
    raw('a length that is no number', wire(site, { headers: { 'Content-Length': 'many' } })),
    raw('an empty length', wire(site, { headers: { 'Content-Length': '' } })),
    raw('a length past all', wire(site, { headers: { 'Content-Length': '9'.repeat(30) } })),
    raw(
      'a length that is too great',
      wire(site, { headers: { 'Content-Length': '1099511627776' } }),
      413,
      'body_too_large',
    ),
    raw(
      'a length that is too short',
      wire(site, { headers: { 'Content-Length': '20' } }),
      400,
      'json_malformed',
    ),
    raw('no length at all', wire(site, { headers: { 'Content-Length': null } })),
    cut('a body that ends before its length', { raw: wire(site, { headers: { 'Content-Length': '500' } }) }),
    cut('chunks that do not end', {
      raw: wire(site, { headers: chunked, body: whole.replace('0\r\n\r\n', '') }),
    }),
    cut('a head that does not end', { raw: 'POST /v1/payments HTTP/1.1\r\nHost: localhost\r\nX-' }),
    raw('a chunk of no size', wire(site, { headers: chunked, body: `\r\n${BODY}\r\n0\r\n\r\n` })),
    raw('a chunk whose size is no number', wire(site, { headers: chunked, body: `xyz\r\n${BODY}\r\n` })),
    raw('a chunk of negative size', wire(site, { headers: chunked, body: `-1\r\n${BODY}\r\n` })),
    raw('a chunk whose size has a sign', wire(site, { headers: chunked, body: `+4d\r\n${BODY}\r\n` })),
    raw('a chunk of a size past all', wire(site, { headers: chunked, body: `${'f'.repeat(20)}\r\n${BODY}` })),
    raw('a chunk that is longer than it says', wire(site, { headers: chunked, body: `2\r\n${BODY}\r\n` })),
    raw('chunks in another coding', wire(site, { headers: { ...chunked, 'Transfer-Encoding': 'xchunked' } })),
    raw(
      'chunks, and then another coding',
      wire(site, { headers: { ...chunked, 'Transfer-Encoding': 'chunked, identity' }, body: whole }),
    ),
    raw(
      'chunks twice',
      wire(site, { headers: { ...chunked, 'Transfer-Encoding': ['chunked', 'identity'] }, body: whole }),
    ),
    raw('a header that is folded', wire(site, { headers: { 'X-Note': 'one\r\n two' } })),
    raw('a header without a colon', wire(site, { headers: { 'X-Note': 'one\r\nnonsense' } })),
    raw('a header without a name', wire(site, { headers: { '': 'one' } })),
    raw('a space before the colon', wire(site, { headers: { 'Content-Type ': 'application/json' } })),
    raw('a space in the name of a header', wire(site, { headers: { 'X Note': 'one' } })),
    raw('NUL in a header', wire(site, { headers: { 'X-Note': 'a\0b' } })),
    raw('lines that end in a line feed alone', wire(site).replaceAll('\r\n', '\n')),
    raw(
      'headers that are too long',
      wire(site, { headers: { 'X-Note': 'a'.repeat(20_000) } }),
      431,
      'headers_too_large',
    ),
    raw(
      'too many headers',
      wire(site, { headers: { 'X-Note': Array.from({ length: 2_500 }, () => 'a') } }),
      431,
      'headers_too_large',
    ),
    raw(
      'a path that is too long',
      start(`POST /v1/payments?${'a'.repeat(20_000)} HTTP/1.1`),
      431,
      'headers_too_large',
    ),
    raw(
      'a chunk that says too much of itself',
      wire(site, { headers: chunked, body: `4d;${'a'.repeat(20_000)}\r\n${BODY}\r\n0\r\n\r\n` }),
      413,
      'body_too_large',
    ),
    raw('no host', wire(site, { headers: { Host: null } })),
    raw('two hosts', wire(site, { headers: { Host: ['localhost', 'elsewhere'] } })),
    raw('two credentials', wire(site, { headers: { authorization: 'Bearer nobody' } })),
    raw(
      'an expectation that is not known',
      wire(site, { headers: { Expect: 'the-unexpected' } }),
      417,
      'expectation_failed',
    ),
    raw('HTTP/0.9', 'GET /v1/payments\r\n\r\n'),
    raw('HTTP/1.2', start('POST /v1/payments HTTP/1.2')),
    raw('HTTP/2.0', start('POST /v1/payments HTTP/2.0')),
    raw('HTTP/9.9', start('POST /v1/payments HTTP/9.9')),
    raw('the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    raw('another protocol', start('POST /v1/payments ICY/1.1')),
    raw('no protocol', start('POST /v1/payments')),
    raw('a method that is not known', start('CHARGE /v1/payments HTTP/1.1')),
    raw('TRACE', start('TRACE /v1/payments HTTP/1.1'), 405, 'method_not_allowed'),
    raw('PURGE', start('PURGE /v1/payments HTTP/1.1'), 405, 'method_not_allowed'),
    raw('PROPFIND', start('PROPFIND /v1/payments HTTP/1.1'), 405, 'method_not_allowed'),
    raw('a method in small letters', start('post /v1/payments HTTP/1.1')),
    raw('no method', start('/v1/payments HTTP/1.1')),
    raw('no path', start('POST HTTP/1.1')),
    raw('a space in the path', start('POST /v1/pay ments HTTP/1.1')),
    raw('TLS', Buffer.from('16030100c8010000c40303', 'hex')),
  ]
}
