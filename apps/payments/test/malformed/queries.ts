import { asOperator, type Row, type Site } from './site.ts'

const wrap = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** What is asked of lists. */
export function queries(site: Site): Row[] {
  const { captured, endpoint } = site
  const get = (path: string, field?: string): Row => [
    `GET ${path.length > 80 ? `${path.slice(0, 60)}… (${path.length})` : path}`,
    { method: 'GET', path },
    400,
    'invalid_request',
    field,
  ]
  const payments = (query: string, field?: string) => get(`/v1/payments?${query}`, field)
  const events = (query: string, field?: string) => get(`/v1/events?${query}`, field)
  const refunds = (query: string, field?: string) => get(`/v1/payments/${captured}/refunds?${query}`, field)
  const deliveries = (query: string, field?: string) =>
    get(`/v1/webhook-endpoints/${endpoint}/deliveries?${query}`, field)
  const lists = [payments, events, refunds, deliveries]
  const turn = (i: number) => lists[i % lists.length]!
  const cursor = wrap(['payments', captured])
  return [
    ...['0', '-1', '101', '1.5', '1e1', '0x10', 'ten', '', '%2010', '9'.repeat(20)].map((limit, i) =>
      turn(i)(`limit=${limit}`, 'limit'),
    ),
    ...[
      '',
      'nonsense',
      '%00',
      '..%2f',
      'A'.repeat(401),
      wrap(null),
      wrap([]),
      wrap({}),
      wrap(['payments']),
    ].flatMap((madeUp, i) => [
      turn(i)(`cursor=${madeUp}`, 'cursor'),
      turn(i + 1)(`cursor=${madeUp}`, 'cursor'),
    ]),
    payments(`cursor=${wrap(['payments', 1])}`, 'cursor'),
    payments(`cursor=${wrap(['payments', captured, captured])}`, 'cursor'),
    payments(`cursor=${wrap(['payments', "' OR 1=1"])}`, 'cursor'),
    payments(`cursor=${cursor}=`, 'cursor'),
    refunds(`cursor=${cursor}`, 'cursor'),
    refunds(`cursor=${wrap(['payments', `ref_${'0'.repeat(32)}`])}`, 'cursor'),
    events(`cursor=${cursor}`, 'cursor'),
    deliveries(`cursor=${cursor}`, 'cursor'),
    payments('offset=10', 'offset'),
    payments('Limit=10', 'Limit'),
    payments('limit[]=10', 'limit[]'),
    payments('__proto__=1', '__proto__'),
    payments('constructor=1', 'constructor'),
    events('account=acct_1', 'account'),
    refunds('status=succeeded', 'status'),
    get('/v1/balances?currency=EUR', 'currency'),
    get('/v1/webhook-endpoints?limit=1', 'limit'),
    ...(
      [
        ['POST', '/v1/payments?amount=5', 'amount'],
        ['POST', `/v1/payments/${captured}/refunds?amount=5`, 'amount'],
        ['POST', '/v1/transfers?destination=x', 'destination'],
        ['POST', '/v1/webhook-endpoints?url=x', 'url'],
        ['GET', `/v1/payments/${captured}?expand=refunds`, 'expand'],
      ] as const
    ).map(
      ([method, path, field]): Row => [
        `${method} ${path}`,
        { method, path, ...(method === 'POST' && { body: {} }) },
        400,
        'invalid_request',
        field,
      ],
    ),
    payments('limit=1&limit=2', 'limit'),
    payments('status=failed&status=succeeded', 'status'),
    payments('reference=a&reference=b', 'reference'),
    events('type=a&type=b', 'type'),
    payments('status=', 'status'),
    payments('status=done', 'status'),
    payments('status=SUCCEEDED', 'status'),
    payments('reference=', 'reference'),
    payments('reference=%00', 'reference'),
    payments(`reference=${'r'.repeat(201)}`, 'reference'),
    payments('reference=%zz'),
    payments('reference=%ff'),
    payments('%zz=1'),
    payments('metadata=a', 'metadata'),
    payments('metadata[]=a', 'metadata[]'),
    payments('metadata[a=b', 'metadata[a'),
    payments('metadata[a][b]=c', 'metadata[a][b]'),
    payments(`metadata[${'n'.repeat(41)}]=a`, `metadata[${'n'.repeat(41)}]`),
    payments(`metadata[a]=${'v'.repeat(501)}`, 'metadata[a]'),
    payments('metadata[a]=1&metadata[a]=2', 'metadata[a]'),
    payments('metadata[a]=%00', 'metadata[a]'),
    payments('metadata[__proto__]=1', 'metadata[__proto__]'),
    ...[
      'yesterday',
      '1700000000',
      '2026-01-01',
      '2026-13-01T00:00:00Z',
      '2026-02-30T00:00:00Z',
      '2026-01-01T25:00:00Z',
      '2026-01-01T00:00:60Z',
      '2026-01-01T00:00:00',
      '2026-01-01T00:00:00%2B23:59',
      '2026-01-01T00:00:00%2B99:00',
      '0000-01-01T00:00:00Z',
      'infinity',
      '',
    ].flatMap((time) => [payments(`created_from=${time}`, 'created_from'), events(`from=${time}`, 'from')]),
    payments('created_to=epoch', 'created_to'),
    events('to=now', 'to'),
    events('type=', 'type'),
    events(`type=${'t'.repeat(256)}`, 'type'),
    events('type=%00', 'type'),
  ]
}

/** The operators are told of their mistakes like everybody else. */
export function operators({ shop, other }: Site): Row[] {
  const id = other.accountId
  const op = (
    method: string,
    path: string,
    body: unknown,
    field?: string,
    status = 400,
    code = 'invalid_request',
  ): Row => [
    `${method} ${path} ${typeof body === 'string' ? body : (JSON.stringify(body) ?? '')}`,
    asOperator({ method, path, ...(body !== undefined && { body }) }),
    status,
    code,
    field,
  ]
  const accounts = (body: unknown, field?: string) => op('POST', '/ops/accounts', body, field)
  const keys = `/ops/accounts/${id}/api-keys`
  return [
    ['no token', { path: '/ops/accounts', apiKey: null, body: { name: 'a' } }, 401, 'unauthorized'],
    ['an API key', { path: '/ops/accounts', apiKey: shop.apiKey, body: { name: 'a' } }, 401, 'unauthorized'],
    ['no token, for nothing', { method: 'GET', path: '/ops/nothing', apiKey: null }, 401, 'unauthorized'],
    ['no token, for metrics', { method: 'GET', path: '/metrics', apiKey: null }, 401, 'unauthorized'],
    accounts({}, 'name'),
    accounts({ name: '' }, 'name'),
    accounts({ name: 7 }, 'name'),
    accounts({ name: null }, 'name'),
    accounts({ name: 'n'.repeat(201) }, 'name'),
    accounts({ name: 'a\0b' }, 'name'),
    accounts({ name: 'a', id: 'acct_1' }, 'id'),
    accounts([]),
    op('POST', '/ops/accounts', '{"name":', undefined, 400, 'json_malformed'),
    op('POST', '/ops/accounts', '{"name":"a","name":"b"}', undefined, 400, 'json_duplicate_member'),
    op('POST', keys, {}, 'mode'),
    op('POST', keys, { mode: 'both' }, 'mode'),
    op('POST', keys, { mode: 'test', key: 'sk_test_1' }, 'key'),
    op('POST', '/ops/accounts/nobody/api-keys', { mode: 'test' }, 'account_id'),
    op('POST', `/ops/accounts/${id}%00/api-keys`, { mode: 'test' }, 'account_id'),
    op(
      'POST',
      `/ops/accounts/acct_${'0'.repeat(32)}/api-keys`,
      { mode: 'test' },
      undefined,
      404,
      'not_found',
    ),
    op('GET', `/ops/accounts/acct_${'0'.repeat(32)}/api-keys`, undefined, undefined, 404, 'not_found'),
    op('POST', `${keys}/both/key_1/revoke`, undefined, 'mode'),
    op('POST', `${keys}/test/key_1/revoke`, undefined, undefined, 404, 'not_found'),
    op('POST', `${keys}/test/%00/revoke`, undefined, 'key_id'),
    op('POST', `${keys}/test/key_1/revoke`, { why: 'lost' }),
    op('GET', '/ops/records?limit=0', undefined, 'limit'),
    op('GET', '/ops/records?older_than=-1', undefined, 'older_than'),
    op('GET', '/ops/records?older_than=1.5', undefined, 'older_than'),
    op('GET', '/ops/records?state=parked', undefined, 'state'),
    op('GET', '/ops/records?account=', undefined, 'account'),
    op('GET', '/ops/records?account=%00', undefined, 'account'),
    op('GET', '/ops/records?cursor=', undefined, 'cursor'),
    op('GET', '/ops/records?cursor=nonsense', undefined, 'cursor'),
    op('GET', `/ops/records?cursor=${wrap(['1', 'a', 'b', 'c\0'])}`, undefined, 'cursor'),
    op('GET', '/ops/reconciliations?limit=0', undefined, 'limit'),
    op('GET', '/ops/reconciliations?cursor=nonsense', undefined, 'cursor'),
    op('GET', `/ops/reconciliations?cursor=${wrap(['payments', 'rec_1'])}`, undefined, 'cursor'),
    op('GET', '/ops/reconciliations?books=stripe', undefined, 'books'),
    op('POST', '/ops/ledger', {}, undefined, 405, 'method_not_allowed'),
    op('GET', '/ops/nothing', undefined, undefined, 404, 'not_found'),
  ]
}
