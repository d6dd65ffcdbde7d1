import type { Mutant } from './mutants.ts'

const SIGNATURES = 'test/webhooks/signatures.test.ts'
const ADDRESSES = 'test/webhooks/addresses.test.ts'
const DELIVER = 'test/webhooks/deliver.test.ts'

/** Faults in webhooks, in and out. */
export const WEBHOOK_MUTANTS: readonly Mutant[] = [
  {
    name: 'webhooks: verify what the bytes decode to',
    file: 'src/webhooks/scheme.ts',
    edits: [
      {
        from: `      .update(body)
      .digest('base64')`,
        to: `      .update(Buffer.from(body).toString('utf8'))
      .digest('base64')`,
      },
    ],
    tests: [SIGNATURES],
  },
  {
    name: 'webhooks: take a timestamp as parseInt does',
    file: 'src/webhooks/verify.ts',
    edits: [{ from: `/^\\d{1,12}$/`, to: `/^\\s*\\d{1,12}/` }],
    tests: [SIGNATURES],
  },
  {
    name: 'webhooks: take what was signed in the future',
    file: 'src/webhooks/verify.ts',
    edits: [{ from: `timestamp > now + toleranceMs`, to: `timestamp > now + 1e9 * toleranceMs` }],
    tests: [SIGNATURES],
  },
  {
    name: 'webhooks: judge one address of several',
    file: 'src/webhooks/target.ts',
    edits: [
      {
        from: `addresses.some((address) => isIP(address) === 0`,
        to: `addresses.slice(0, 1).some((address) => isIP(address) === 0`,
      },
    ],
    tests: [ADDRESSES],
  },
  {
    name: 'webhooks: let the socket resolve the name once more',
    file: 'src/webhooks/post.ts',
    edits: [
      { from: `      lookup: pinnedLookup(addresses),\n`, to: `` },
      { from: `import { checkUrl, pinnedLookup, `, to: `import { checkUrl, ` },
      { from: `  addresses: readonly string[],`, to: `  _addresses: readonly string[],` },
    ],
    tests: [ADDRESSES],
  },
  {
    name: 'webhooks: take IPv4 that is mapped into IPv6 for public',
    file: 'src/webhooks/address.ts',
    edits: [{ from: `globalUnicast.check(address, 'ipv6') && `, to: `` }],
    tests: [ADDRESSES],
  },
  {
    name: 'webhooks: follow no rule at a delivery that was kept at the creation',
    file: 'src/webhooks/post.ts',
    edits: [{ from: `checkUrl(given, rules)`, to: `checkUrl(given, { allowPrivate: true })` }],
    tests: [ADDRESSES],
  },
  {
    name: 'webhooks: let a late deliverer write',
    file: 'src/store/postgres/sql/webhook-deliveries.ts',
    edits: [
      {
        from: `AND fence = $4::bigint AND due_at IS NOT NULL`,
        to: `AND fence >= $4::bigint`,
      },
    ],
    tests: [DELIVER],
  },
  {
    name: 'webhooks: take what another deliverer has',
    file: 'src/store/postgres/sql/webhook-deliveries.ts',
    edits: [
      {
        from: `
      AND (lease_until IS NULL OR lease_until <= clock_timestamp())
    ORDER BY`,
        to: `
    ORDER BY`,
      },
      { from: ` AND (d.lease_until IS NULL OR d.lease_until <= clock_timestamp())`, to: `` },
    ],
    tests: [DELIVER],
  },
  {
    name: 'webhooks: give all places to one endpoint',
    file: 'src/store/postgres/sql/webhook-deliveries.ts',
    edits: [{ from: `LIMIT greatest(0, $3::int - coalesce(b.count, 0))`, to: `LIMIT $3::int + 1000` }],
    tests: [DELIVER],
  },
  {
    name: 'webhooks: deliver what is oldest first, whoever has all the places',
    file: 'src/store/postgres/sql/webhook-deliveries.ts',
    edits: [
      { from: `ORDER BY row_number() OVER`, to: `ORDER BY 0 * row_number() OVER` },
      { from: `+ (SELECT coalesce(sum(o.count), 0)`, to: `+ (SELECT 0 * coalesce(sum(o.count), 0)` },
    ],
    tests: [DELIVER],
  },
  {
    name: 'webhooks: lose a replay that was asked for while an attempt was under way',
    file: 'src/store/postgres/sql/webhook-deliveries.ts',
    edits: [{ from: `AND attempts < $11::int`, to: `AND attempts < $11::int - 1000` }],
    tests: ['test/webhooks/history.test.ts'],
  },
  {
    name: 'webhooks: take a redirect for an answer',
    file: 'src/webhooks/delivery.ts',
    edits: [{ from: `status >= 200 && status < 300`, to: `status >= 200 && status < 400` }],
    tests: [DELIVER],
  },
  {
    name: 'webhooks: forget the old secret at once',
    file: 'src/store/postgres/sql/webhooks.ts',
    edits: [{ from: `OR $3::float8 <= 0 AS over`, to: `OR $3::float8 >= 0 AS over` }],
    tests: ['test/webhooks/endpoints.test.ts'],
  },
  {
    name: 'webhooks: stage a job for every duplicate',
    file: 'src/store/postgres/sql/webhooks.ts',
    edits: [
      {
        from: `SELECT account, $4::uuid, $5::text, $6::text, clock_timestamp() FROM noted`,
        to: `SELECT $1, $4::uuid, $5::text, $6::text, clock_timestamp()`,
      },
    ],
    tests: ['test/webhooks/receive.test.ts'],
  },
  {
    name: 'webhooks: know messages for a week',
    file: 'src/core/limits.ts',
    edits: [{ from: `inboxRetentionMs: 30 * 24`, to: `inboxRetentionMs: 7 * 24` }],
    tests: ['test/webhooks/receive.test.ts'],
  },
  {
    name: 'webhooks: replay what belongs to another account',
    file: 'src/store/postgres/sql/webhook-deliveries.ts',
    edits: [
      {
        from: `SELECT m.account, $2::uuid, m.id, clock_timestamp() FROM \${schema}.webhook_messages AS m
WHERE m.account = $1 AND m.id = $3::uuid`,
        to: `SELECT m.account, $2::uuid, m.id, clock_timestamp() FROM \${schema}.webhook_messages AS m
WHERE $1 <> '' AND m.id = $3::uuid`,
      },
    ],
    tests: ['test/webhooks/history.test.ts'],
  },
  {
    name: 'tell an owner why a name cannot be resolved',
    file: 'src/webhooks/target.ts',
    edits: [{ from: `    return refuse(NOT_PUBLIC)\n`, to: `    throw error\n` }],
    tests: ['test/webhooks/addresses.test.ts'],
    only: 'the refusal is the same',
  },
  {
    name: 'let two endpoints that are made at once both find the last place',
    file: 'src/store/postgres/sql/webhooks.ts',
    edits: [{ from: `SELECT pg_advisory_xact_lock(hashtextextended`, to: `SELECT (hashtextextended` }],
    tests: ['test/webhooks/endpoints.test.ts'],
    only: 'one after the other',
  },
]
