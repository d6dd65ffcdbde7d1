import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { derivedKey } from '../../src/entries/keys.ts'
import { type CallContext, onlyonce, operation, reply } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { reconciler } from '../../src/workers/index.ts'
import { type GatewayClient, gatewayClient, startGateway } from '../gateway/client.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { freshDatabase } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import { Talker } from '../setup/talker.ts'
import { waitUntil } from '../setup/wait.ts'
import {
  ACCOUNT,
  charging,
  countNotes,
  createEffects,
  lookAt,
  note,
  OLD_SECRET,
  PAY,
  PAYMENT,
  type Payment,
  untilLapsed,
} from './payments.ts'

const PROGRAM = new URL('../programs/payment.ts', import.meta.url)

async function scene() {
  const database = await freshDatabase()
  const pool = database.direct({ max: 2 })
  await createEffects(pool)
  const gateway = await startGateway()
  cleanUpLater(() => gateway.stop())
  const client = gatewayClient(gateway.url)
  cleanUpLater(async () => client.close())
  const key = randomUUID()
  const env = { ...database.environment, GATEWAY_URL: gateway.url }
  return { database, pool, gateway, client, key, env }
}

type Scene = Awaited<ReturnType<typeof scene>>

/** Ways to die with a charge that nobody has written down. */
const DEATHS: Readonly<Record<string, (scene: Scene, env: Record<string, string>) => Promise<void>>> = {
  'before it heard the answer': async ({ gateway }, env) => {
    await gateway.control({ fault: 'hold', at: 'after' })
    const owner = new Talker(PROGRAM, env)
    await waitUntil('it was charged', async () => (await gateway.journal()).length === 1)
    await owner.kill()
  },
  'with the answer in its hands': async (_, env) => {
    const owner = new Talker(PROGRAM, { ...env, ONLYONCE_CRASH_AT: 'operation.call.after' })
    await expect(owner.hear()).rejects.toThrow(/ended before/)
  },
}

describe('a charge, a crash, a new release with new secrets, and a retry', () => {
  it.each(Object.entries(DEATHS))('is one charge under one key: it died %s', async (_, die) => {
    const here = await scene()
    const { pool, gateway, key, env } = here
    await die(here, { ...env, RELEASE: '1', KEY: key, LEASE_MS: '500' })
    expect(await gateway.journal()).toHaveLength(1)
    const { rows } = await pool.query('SELECT points, version, progress_key_id FROM onlyonce.records')
    expect(rows).toEqual([{ points: 1, version: '1', progress_key_id: 'default' }])
    await untilLapsed(pool, key)

    const deployed = new Talker(PROGRAM, { ...env, RELEASE: '2', KEY: key })
    const [charge] = await gateway.journal()
    const told = await deployed.hear()
    expect(told).toEqual({ outcome: 'executed', status: 201, value: { charge: charge!.id } })
    const retried = await new Talker(PROGRAM, { ...env, RELEASE: '2', KEY: key }).hear()
    expect(retried).toEqual({ ...told, outcome: 'replayed' })
    expect(await gateway.journal()).toMatchObject([
      { kind: 'charge', key: derivedKey({ account: ACCOUNT, operation: PAY, key, step: 'charged' }) },
    ])
    const sealed = await pool.query('SELECT version, fence::int, reply_key_id FROM onlyonce.records')
    expect(sealed.rows).toEqual([{ version: '1', fence: 2, reply_key_id: 'new' }])
    for (const step of ['created', 'settled']) expect(await countNotes(pool, `${key} ${step}`)).toBe(1)
    // What is new is for the new code.
    const other = await new Talker(PROGRAM, { ...env, RELEASE: '2', KEY: randomUUID() }).hear()
    expect(other).toMatchObject({ outcome: 'executed', value: { charge: expect.stringMatching(/^none/) } })
  })
})

const LOOKS = 3

/** A payment whose last step fails whenever it is run. */
function failing(gateway: GatewayClient, compensated: boolean) {
  return operation(PAY, async (op, payment: Payment) => {
    const charge = await op.call('charged', charging(gateway, op, payment))
    if (compensated) {
      op.compensate('refunded', {
        call: ({ key, signal }: CallContext) => gateway.refund({ charge: charge.id }, { key, signal }),
        find: ({ key, signal }: CallContext) => gateway.findByKey(key, { signal }),
      })
    }
    return op.transaction('settled', async (tx) => {
      await note(tx, `${op.key} settled`)
      await tx.query('SELECT 1 / 0')
      return reply(201, { charge: charge.id })
    })
  })
}

async function failingScene(compensated: boolean) {
  const here = await scene()
  const pay = failing(here.client, compensated)
  const once = onlyonce({
    store: postgres({ pool: here.database.pool({ max: 4 }), pooler: POOLER }),
    secret: OLD_SECRET,
    reconcileAfterMs: Array.from({ length: LOOKS }, () => 1),
  })
  cleanUpLater(() => once.close({ maxMs: 1_000 }))
  const call = { account: ACCOUNT, key: here.key, input: PAYMENT }
  return { ...here, once, run: () => once.run(pay, call), id: { ...call, operation: PAY } }
}

describe('a step behind a charge that fails for good', () => {
  it('leaves the charge durable, and ends parked for the operator', async () => {
    const { pool, gateway, once, key, run, id } = await failingScene(false)
    await expect(run()).rejects.toThrow(/division by zero/)
    const [charge] = await gateway.journal()
    for (let looks = 0; looks < LOOKS; looks += 1) {
      const record = await lookAt(pool, key)
      expect(record).toMatchObject({ state: 'unknown', points: 1, recovery_point: 'charged' })
      expect(record!.progress).toContain(charge!.id)
      await waitUntil('it was looked at', async () => (await reconciler(once).runOnce()).done > 0)
    }
    expect(await run()).toMatchObject({ outcome: 'parked', why: expect.stringContaining('division by zero') })
    expect((await lookAt(pool, key))!.progress).toContain(charge!.id)
    const { record } = await operator(once).show(id)
    expect(record).toMatchObject({ state: 'parked', recoveryPoint: 'charged', lookAt: null })
    expect((await operator(once).list({ states: ['parked'] })).items).toMatchObject([{ key }])
    expect(await reconciler(once).runOnce()).toEqual({ done: 0, more: false })
    // What was charged is known, so nobody has asked for it, or sent it again.
    expect((await gateway.state()).received).toEqual({ charge: 1, refund: 0, lookup: 0 })
    expect(await gateway.journal()).toHaveLength(1)
    expect(await countNotes(pool, `${key} settled`)).toBe(0)
  })

  it('is refunded once where it can be undone, and the answer stays', async () => {
    const { pool, gateway, key, run } = await failingScene(true)
    // The first answer about the refund is lost, too.
    const refundKey = derivedKey({ account: ACCOUNT, operation: PAY, key, step: 'refunded' })
    await gateway.control({ fault: 'lose', at: 'after', key: refundKey })
    for (let times = 0; times < 2; times += 1) {
      await expect(run()).rejects.toMatchObject({
        code: 'handler_failed',
        cause: { message: expect.stringContaining('division by zero') },
      })
    }
    const journal = await gateway.journal()
    expect(journal.map(({ kind, status }) => ({ kind, status }))).toEqual([
      { kind: 'charge', status: 'succeeded' },
      { kind: 'refund', status: 'succeeded' },
    ])
    expect(journal[1]).toMatchObject({ key: refundKey, reference: journal[0]!.id })
    expect(await lookAt(pool, key)).toMatchObject({ state: 'completed' })
    expect(await countNotes(pool, `${key} settled`)).toBe(0)
  })
})
