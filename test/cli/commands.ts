/**
 * Every command against a server, as tests: the embedded one, and one of another origin. Migrations are applied by a role that may
 * create tables; everything else is done by roles that may not.
 */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Onlyonce, onlyonce, operation } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { outbox, relay } from '../../src/outbox/index.ts'
import { type PostgresTx, postgres } from '../../src/store/postgres/index.ts'
import { webhooks } from '../../src/webhooks/index.ts'
import { emitAlone, inTransaction, runDry } from '../outbox/office.ts'
import { run } from './under-test.ts'
import { openPool, openWorld, type Role, type World } from './world.ts'

const SECRET = 'the-secret-of-the-service-0123456789-0123'
const ENCRYPTION = 'the-encryption-of-the-service-0123456789'
const SIGNED = ['--actor', 'ann@example.com', '--reason', 'ticket 4711']
const ID = ['acct_1', 'orders.create'] as const

/** A payment whose charge is durable, and wrong: the step behind it fails upon it. */
const settlePayment = operation('payments.settle', async (op) => {
  const charge = await op.call('charged', { call: async () => ({ id: 'ch_7' }) })
  return await op.transaction('settled', async () => {
    throw new Error(`${charge.id} is of another order`)
  })
})

/** What happens to a payment whose processor does not answer. */
const createPayment = operation('payments.create', async (op) => {
  const charge = await op.call('charged', {
    call: async () => {
      throw new Error('the answer was lost')
    },
    find: async () => ({ status: 'pending' as const }),
  })
  return { charge }
})

let keys = 0
function makeKey(): string {
  keys += 1
  return `key-of-the-command-line-${keys}`
}

export function testCommands(serverUrlOf: () => string): void {
  let world: World
  let once: Onlyonce<PostgresTx>
  let pool: pg.Pool
  const sealing = { env: { ONLYONCE_ENCRYPTION: ENCRYPTION } }
  const callOf = (key: string) => ({ account: ID[0], operation: ID[1], key, input: { amount: 5 } })
  const retry = (key: string) => once.execute(callOf(key), async () => 'ran again')
  const stateOf = async (key: string) => (await once.explain(callOf(key))).state

  /** A record whose outcome is not known, as a function leaves it that ends its own transaction. */
  async function leaveUnknown(): Promise<string> {
    const key = makeKey()
    await once.transaction(callOf(key), (tx) => tx.query('SELECT 1; COMMIT; SELECT 2')).catch(() => {})
    expect(await stateOf(key)).toBe('unknown')
    return key
  }

  beforeAll(async () => {
    world = await openWorld(serverUrlOf())
    const migrated = await world.as('migrator', ['migrate', '--json'])
    expect(migrated.json.applied.length).toBeGreaterThan(10)
    for (const [role, kind] of [
      ['app', 'service'],
      ['support', 'operator'],
      ['reader', 'reader'],
    ] as const) {
      const args = ['grants', '--role', world.roleOf(role), '--for', kind, '--apply']
      expect((await world.as('migrator', args)).code).toBe(0)
    }
    pool = openPool(world.urlOf('app'), 4)
    once = onlyonce({
      store: postgres({ pool, migrate: 'verify' }),
      secret: SECRET,
      encryption: ENCRYPTION,
      background: false,
    })
    await once.start()
  })

  afterAll(async () => {
    await once?.close({ maxMs: 1_000 })
    await pool?.end()
    await world?.close()
  })

  test('migrate: up to a number, the rest, and again; the role of the service may not', async () => {
    const inSchema = (...args: string[]) => ['migrate', '--schema', 'by_steps', '--json', ...args]
    expect(await world.as('migrator', inSchema('--check'))).toMatchObject({ code: 1, json: { applied: [] } })
    expect((await world.as('app', inSchema())).code).toBe(4)
    const first = await world.as('migrator', inSchema('--to', '3'))
    expect(first.json.applied).toHaveLength(3)
    expect(await world.as('migrator', inSchema('--check', '--to', '3'))).toMatchObject({ code: 0 })
    const before = await world.as('migrator', inSchema('--check'))
    expect(before).toMatchObject({ code: 1, json: { applied: first.json.applied } })
    expect((await world.as('migrator', inSchema())).json.applied).toEqual(before.json.pending)
    expect(await world.as('migrator', inSchema())).toMatchObject({ code: 0, json: { applied: [] } })
    expect(await world.as('migrator', inSchema('--check'))).toMatchObject({ code: 0, json: { pending: [] } })
  })

  test('migrate --print: what a person applies is what migrate would have applied', async () => {
    const args = ['migrate', '--schema', 'by_hand', '--print']
    const { stdout: script } = await world.as('migrator', args)
    expect((await run(args)).stdout).toBe(script)
    const client = new pg.Client({ connectionString: world.urlOf('migrator') })
    await client.connect()
    await client.query(script)
    // Twice is refused by the ledger, and changes nothing.
    await expect(client.query(script)).rejects.toThrow(/already exists|duplicate key/)
    await client.end()
    expect((await world.as('migrator', ['migrate', '--schema', 'by_hand', '--check'])).code).toBe(0)
    expect((await world.as('migrator', args)).stdout).toBe('-- The schema by_hand is up to date.\n')
  })

  test('grants: prints what it would give, with the role quoted', async () => {
    const { code, stdout } = await run(['grants', '--role', 'ann; DROP', '--no-delete'])
    expect(code).toBe(0)
    expect(stdout).toContain('GRANT USAGE ON SCHEMA onlyonce TO "ann; DROP";')
    expect(stdout).toContain('GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA onlyonce TO')
    expect(stdout).not.toContain('DELETE')
    expect((await world.as('reader', ['grants', '--role', world.roleOf('reader'), '--apply'])).code).toBe(4)
  })

  test('explain, list and show tell of a record, to a role that may only read', async () => {
    const key = await leaveUnknown()
    const told = await world.as('reader', ['explain', ...ID, key, '--json'])
    expect(told).toMatchObject({
      code: 0,
      json: { state: 'unknown', attempts: [{ fence: 1, outcome: 'unknown' }] },
    })
    expect(told.json.created_at).toMatch(/^20\d\d-/)
    expect((await world.as('reader', ['explain', ...ID, key])).stdout).toMatch(
      /^state +unknown\nwhy +Whether/,
    )
    expect(await world.as('reader', ['explain', ...ID, makeKey()])).toMatchObject({ code: 1 })
    const listed = await world.as('reader', ['list', '--state', 'unknown', '--account', ID[0], '--json'])
    expect(listed.json.items).toContainEqual(expect.objectContaining({ key, state: 'unknown' }))
    const page = await world.as('reader', ['list', '--state', 'unknown', '--limit', '1'])
    expect(page.stdout).toMatch(/^state +account +operation/)
    const shown = await world.as('reader', ['show', ...ID, key, '--json'])
    expect(shown).toMatchObject({ code: 0, json: { record: { key, fence: 1 }, audit: [], reply: null } })
    const refused = await world.as('reader', ['park', ...ID, key, ...SIGNED])
    expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining('lacks a right') })
    expect(await stateOf(key)).toBe('unknown')
  })

  test('park, unpark and resolve with a reply: by an operator without the secret, sealed as the service does', async () => {
    const key = await leaveUnknown()
    expect(await world.as('support', ['park', ...ID, key, ...SIGNED])).toMatchObject({ code: 0 })
    const parked = await world.as('support', ['list', '--state', 'parked', '--json'])
    expect(parked.json.items.map((record: { key: string }) => record.key)).toContain(key)
    // Upon an old page: refused, and nothing is changed.
    expect(await world.as('support', ['unpark', ...ID, key, ...SIGNED, '--fence', '7'])).toMatchObject({
      code: 1,
    })
    expect(await world.as('support', ['unpark', ...ID, key, ...SIGNED])).toMatchObject({ code: 0 })
    const reply = ['--status', '201', '--header', 'location: /orders/7', '--body', '{"id":7}', '--yes']
    const resolve = ['resolve', ...ID, key, ...SIGNED, ...reply]
    expect(await world.as('support', resolve)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('seals'),
    })
    const other = { env: { ONLYONCE_ENCRYPTION: 'other-bytes-than-the-service-has-0123456789' } }
    expect((await world.as('support', resolve, other)).stderr).toContain('other bytes here')
    const unlisted = {
      env: { ONLYONCE_ENCRYPTION: JSON.stringify({ current: 'new', keys: { new: ENCRYPTION } }) },
    }
    expect((await world.as('support', resolve, unlisted)).stderr).toContain(
      'No process of the service has started',
    )
    expect(await stateOf(key)).toBe('unknown')
    expect(await world.as('support', resolve, sealing)).toMatchObject({
      code: 0,
      stdout: `acct_1 orders.create ${key} is completed now.\n`,
    })
    expect(await retry(key)).toEqual({ outcome: 'replayed', value: { id: 7 } })
    const { rows } = await world.admin.query('SELECT reply_key_id FROM onlyonce.records WHERE key = $1', [
      key,
    ])
    expect(rows).toEqual([{ reply_key_id: 'default' }])
    const shown = await world.as('support', ['show', ...ID, key, '--reply', '--json'], sealing)
    expect(shown.json).toMatchObject({ reply: { status: 201, body: { text: '{"id":7}' } } })
    expect(shown.json.audit.map((one: { action: string }) => one.action)).toEqual([
      'park',
      'unpark',
      'resolve',
    ])
    expect((await world.as('support', ['show', ...ID, key, '--reply'])).code).toBe(2)
    expect(await world.as('support', resolve, sealing)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('never changed'),
    })
    // No start of the command line is taken for one of the service.
    const listed = await world.admin.query('SELECT purpose, key_id FROM onlyonce.key_ids ORDER BY purpose')
    expect(listed.rows).toEqual([
      { purpose: 'fingerprint', key_id: 'default' },
      { purpose: 'reply', key_id: 'default' },
    ])
  })

  test('resolve --allow-retry: the next request runs', async () => {
    const key = await leaveUnknown()
    const args = ['resolve', ...ID, key, '--allow-retry', ...SIGNED, '--json']
    const ran = await world.as('support', args, { terminal: true, stdin: 'yes\n' })
    expect(ran).toMatchObject({ code: 0, json: { key, state: 'retryable' } })
    expect(await retry(key)).toEqual({ outcome: 'executed', value: 'ran again' })
  })

  test('evidence: told about the call that show names', async () => {
    const id = { account: ID[0], key: makeKey() }
    expect((await once.run(createPayment, { ...id, input: {} })).outcome).toBe('unknown')
    const shown = await world.as('support', ['show', id.account, 'payments.create', id.key, '--json'])
    const call = shown.json.in_doubt
    expect(call).toMatchObject({ step: 'charged' })
    const args = ['evidence', id.account, call.key, '--result-file', '-', ...SIGNED, '--json']
    expect(await world.as('support', args, { stdin: '{"id":' })).toMatchObject({ code: 2 })
    const told = await world.as('support', args, { ...sealing, stdin: '{"id":"ch_42"}' })
    expect(told).toMatchObject({ code: 0, json: { accepted: true, why: 'record_waits' } })
    expect(await world.as('support', args, { ...sealing, stdin: '{"id":"ch_43"}' })).toMatchObject({
      code: 1,
    })
    const after = await world.as(
      'support',
      ['show', id.account, 'payments.create', id.key, '--results'],
      sealing,
    )
    expect(after.stdout).toMatch(/evidence about .*"id":"ch_42"/)
    expect(after.stdout).toContain('add_evidence')
  })

  test('discard-result: the wrong result of a call is taken back, and stays in the audit', async () => {
    const key = makeKey()
    const id = [ID[0], 'payments.settle', key]
    await once.run(settlePayment, { account: ID[0], key, input: {} }).catch(() => {})
    await world.admin.query(
      `UPDATE onlyonce.records SET state = 'parked', expires_at = NULL, error_code = coalesce(error_code, 'E') WHERE key = $1`,
      [key],
    )
    const args = ['discard-result', ...id, ...SIGNED, '--yes', '--json']
    expect(await world.as('support', [...args, '--step', 'other'], sealing)).toMatchObject({ code: 1 })
    expect(await world.as('support', [...args, '--step', 'charged'])).toMatchObject({ code: 2 })
    const done = await world.as('support', [...args, '--step', 'charged'], sealing)
    expect(done).toMatchObject({ code: 0, json: { key, step: 'charged', state: 'parked' } })
    const shown = await world.as('support', ['show', ...id, '--results', '--json'], sealing)
    expect(shown.json).toMatchObject({
      in_doubt: { step: 'charged', key: done.json.call_key },
      results: { steps: [], discarded: [{ step: 'charged', result: { id: 'ch_7' } }] },
    })
  })

  test('stuck: 1 where there is something', async () => {
    await leaveUnknown()
    expect(await world.as('reader', ['stuck', '--json'])).toMatchObject({
      code: 0,
      json: { unknown: { count: 0 } },
    })
    const found = await world.as('reader', ['stuck', '--older-than', '1ms'])
    expect(found).toMatchObject({ code: 1, stdout: expect.stringMatching(/unknown +[1-9]/) })
  })

  test('reap: counts, then removes with a bar where a person looks on', async () => {
    const [old, young] = [makeKey(), makeKey()]
    for (const key of [old, young]) await retry(key)
    await world.admin.query(
      `UPDATE onlyonce.records SET expires_at = now() - interval '1 day', changed_at = now() - interval '1 day' WHERE key = $1`,
      [old],
    )
    const counted = await world.as('reader', ['reap', '--dry-run', '--json'])
    expect(counted).toMatchObject({ code: 0, json: { dry_run: true, count: 1 } })
    expect(counted.json.oldest_age_ms).toBeGreaterThan(80_000_000)
    expect(await world.as('support', ['reap'])).toMatchObject({ code: 4 })
    const ran = await world.as('app', ['reap'], { terminal: true })
    expect(ran).toMatchObject({ code: 0, stdout: '1 records were removed.\n' })
    expect(ran.stderr).toContain(`removing [${'#'.repeat(30)}] 1 of 1`)
    expect(await world.as('app', ['reap'])).toMatchObject({ stdout: '0 records were removed.\n', stderr: '' })
    expect([await stateOf(old), await stateOf(young)]).toEqual(['none', 'completed'])
  })

  test('issue-key: one that the service takes; and none under a secret that the service has not', async () => {
    const issue = (secret: string) =>
      world.as('reader', ['issue-key', ...ID, '--expires-in', '5m', '--json'], {
        env: { ONLYONCE_SECRET: secret },
      })
    const { code, json } = await issue(SECRET)
    expect(code).toBe(0)
    expect(await retry(json.key)).toEqual({ outcome: 'executed', value: 'ran again' })
    expect(await issue(`${SECRET}, but another`)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('other bytes'),
    })
    const ring = JSON.stringify({ current: 'b', keys: { b: SECRET } })
    expect(await issue(ring)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('No process of the service'),
    })
  })

  test('rotate: tells which keys are needed, and seals with the current one', async () => {
    await retry(makeKey())
    const ring = JSON.stringify({
      current: 'next',
      keys: { default: ENCRYPTION, next: `${ENCRYPTION}, the next` },
    })
    const options = { env: { ONLYONCE_SECRET: SECRET, ONLYONCE_ENCRYPTION: ring } }
    const store = postgres({ pool, migrate: 'verify' })
    const next = onlyonce({ store, secret: SECRET, encryption: JSON.parse(ring), background: false })
    await next.start()
    const before = await world.as('app', ['rotate'], options)
    expect(before).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/encryption +default +no +\d+ replies/),
    })
    expect(before.stdout).toMatch(/secret +default +yes +\d+ records/)
    const done = await world.as('app', ['rotate', '--reseal'], { ...options, terminal: true, stdin: 'y\n' })
    expect(done).toMatchObject({ code: 0, stdout: expect.stringMatching(/\d+ pieces were sealed anew\.\n$/) })
    expect(done.stderr).toContain('sealing [')
    expect(done.stdout).not.toMatch(/encryption +default/)
    once = next
  })

  test('erase: no erased key runs again', async () => {
    const [key, account] = [makeKey(), 'acct_to_erase']
    const call = { ...callOf(key), account }
    await once.execute(call, async () => 'paid')
    const args = ['erase', '--account', account, ...SIGNED, '--yes', '--json']
    expect(await world.as('support', args)).toMatchObject({ code: 4 })
    expect(await world.as('app', args)).toMatchObject({ code: 0, json: { erased: 1 } })
    const told = await once.execute(call, async () => 'ran again').catch((error) => error)
    expect(told).toMatchObject({ code: 'key_erased', status: 410 })
  })

  test('outbox: lag, what is parked, and another try', async () => {
    const box = outbox(once)
    const worker = relay(once, { destinations: { billing: async () => {} } })
    await runDry(worker)
    await emitAlone(pool, box.emit, { account: 'acct_1', type: 'order.made', payload: 1 })
    await world.admin.query(`UPDATE onlyonce.events SET emitted_at = now() - interval '1 hour'`)
    await world.admin.query(`UPDATE onlyonce.fresh SET emitted_at = now() - interval '1 hour'`)
    const lag = await world.as('reader', ['outbox', 'lag', '--older-than', '5m', '--json'])
    expect(lag).toMatchObject({ code: 1, json: [{ destination: 'billing', count: 1, parked: 0 }] })
    await inTransaction(pool, (tx) => box.stage(tx, { account: 'acct_1', job: 'send_receipt' }))
    await world.admin.query(
      `UPDATE onlyonce.jobs SET run_at = NULL, parked_at = now(), error_code = 'E', error_message = 'no \u001b[31m paper'`,
    )
    const parked = await world.as('reader', ['outbox', 'parked', '--json'])
    expect(parked.json.items).toMatchObject([{ account: 'acct_1', name: 'send_receipt' }])
    expect((await world.as('reader', ['outbox', 'parked'])).stdout).toContain('no \\u001b[31m paper')
    const one = ['outbox', 'replay', 'acct_1', parked.json.items[0].id]
    expect(await world.as('app', one)).toMatchObject({ code: 0 })
    expect(await world.as('app', one)).toMatchObject({ code: 1 })
    expect(await world.as('app', ['outbox', 'replay', '--all', '--json'])).toMatchObject({
      code: 0,
      json: { replayed: 0 },
    })
    expect((await box.parked()).items).toEqual([])
  })

  test('webhooks replay: one message, and those of a day', async () => {
    const account = 'acct_hooks'
    const hooks = webhooks(once, { allowPrivate: true })
    const { id: endpoint } = (await hooks.endpoints.create({ account, url: 'http://127.0.0.1:9/hooks' }))
      .endpoint
    await emitAlone(
      pool,
      outbox(once).emit,
      [1, 2].map((payload) => ({ account, type: 'order.made', payload })),
    )
    await runDry(relay(once, { destinations: { webhooks: hooks.destination } }))
    await world.admin.query(
      `UPDATE onlyonce.webhook_deliveries SET state = 'delivered', due_at = NULL, ended_at = now()`,
    )
    const due = async () =>
      (await world.admin.query('SELECT FROM onlyonce.webhook_deliveries WHERE due_at IS NOT NULL')).rowCount
    const { items } = await hooks.messages.list({ account })
    const replay = ['webhooks', 'replay', account, endpoint, '--json']
    expect(await world.as('app', [...replay, '--message', items[0]!.id])).toMatchObject({
      code: 0,
      json: { replayed: 1 },
    })
    expect(await due()).toBe(1)
    const day = ['--from', '2020-01-01', '--to', '2100-01-01T00:00:00Z']
    expect(await world.as('app', [...replay, ...day])).toMatchObject({ code: 0, json: { replayed: 2 } })
    expect(await due()).toBe(2)
    expect(await world.as('app', [...replay, '--from', '2020-01-01'])).toMatchObject({ code: 2 })
    expect(await world.as('app', ['webhooks', 'replay', account, 'we_none', '--message', 'x'])).toMatchObject(
      { code: 1 },
    )
  })

  test('doctor: finds what is wrong, and says what to do', async () => {
    const look = async (role: Role, ...args: string[]) => {
      const { code, json } = await world.as(role, ['doctor', '--json', ...args], {
        env: { ONLYONCE_SECRET: SECRET, ...sealing.env },
      })
      const findings: { level: string; about: string; found: string; advice: string | null }[] = json.findings
      for (const { level, advice } of findings) expect(advice === null).toBe(level === 'ok')
      const of = (about: string) => findings.filter((one) => one.about === about)
      return {
        code,
        of,
        told: findings.map(({ level, about, found }) => `${level} ${about}: ${found}`).join('\n'),
      }
    }
    const well = await look('app')
    for (const about of [
      'versions',
      'primary',
      'clock',
      'isolation',
      'time-outs',
      'connections',
      'pooler',
      'schema',
      'rights',
      'indexes',
      'bloat',
      'stuck',
      'keys',
    ]) {
      expect(
        well.of(about).map(({ level }) => level),
        about,
      ).toContain('ok')
    }
    const role = world.roleOf('app')
    await world.admin.query(`ALTER ROLE ${role} SET statement_timeout = '2s'; ALTER ROLE ${role} SET synchronous_commit = off;
      ALTER ROLE ${role} SET default_transaction_isolation = serializable; ALTER ROLE ${role} CONNECTION LIMIT 30;
      DROP INDEX onlyonce.records_due; ALTER TABLE onlyonce.audit DISABLE TRIGGER audit_is_kept;
      ALTER TABLE onlyonce.records SET (autovacuum_enabled = off);
      REVOKE UPDATE ON onlyonce.records FROM ${role}`)
    const bad = await look('app', '--pool-size', '20', '--processes', '6')
    await world.admin.query(`ALTER ROLE ${role} RESET ALL; ALTER ROLE ${role} CONNECTION LIMIT -1;
      CREATE INDEX records_due ON onlyonce.records (look_at) WHERE look_at IS NOT NULL;
      ALTER TABLE onlyonce.audit ENABLE TRIGGER audit_is_kept; ALTER TABLE onlyonce.records RESET (autovacuum_enabled);
      GRANT UPDATE ON onlyonce.records TO ${role}`)
    expect(bad.code).toBe(1)
    expect(bad.told).toContain('warning time-outs: statement_timeout is 2s.')
    expect(bad.told).toContain('error durability: synchronous_commit is off.')
    expect(bad.told).toContain('notice isolation: Transactions are serializable by default.')
    expect(bad.told).toContain(
      `6 processes with pools of 20 want 120 connections, and the role ${role} has 30.`,
    )
    expect(bad.told).toContain('error indexes: Missing: records_due.')
    expect(bad.told).toContain('error audit: Triggers are turned off: audit_is_kept.')
    expect(bad.told).toContain('warning bloat: autovacuum is off for records.')
    expect(bad.told).toContain(`lacks UPDATE on onlyonce.records. No request works without UPDATE.`)
    // A role that applies migrations should not be that of the service; and a schema may be missing altogether.
    expect((await look('migrator')).told).toContain('owns the schema onlyonce')
    const missing = await look('app', '--schema', 'not_there')
    expect(missing).toMatchObject({
      code: 1,
      told: expect.stringContaining('error schema: The schema not_there has no tables'),
    })
  })

  test('a database that refuses, or does not answer, is told as such', async () => {
    const url = new URL(world.urlOf('app'))
    const as = (changes: Partial<URL>) => {
      const ONLYONCE_DATABASE_URL = Object.assign(new URL(url.href), changes).href
      return Promise.all(
        ['doctor', 'stuck', 'migrate'].map((name) => run([name], { env: { ONLYONCE_DATABASE_URL } })),
      )
    }
    for (const { code, stderr } of await as({ password: 'wrong-password' })) {
      expect([code, stderr]).toEqual([4, expect.stringContaining('refuses this user or its password')])
    }
    for (const { code } of await as({ pathname: '/no_such_database' })) expect(code).toBe(4)
    for (const { code } of await as({ port: '1' })) expect(code).toBe(3)
  })

  test('a schema that is missing is told as such by every other command', async () => {
    expect(await world.as('app', ['list', '--schema', 'not_there'])).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('Run `onlyonce migrate`'),
    })
    expect((await operator(once).list({ states: ['parked'] })).cursor).toBeNull()
  })
}
