import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { gatewayClient, startGateway } from '../gateway/client.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { freshDatabase } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import { Talker } from '../setup/talker.ts'
import {
  ACCOUNT,
  countNotes,
  createEffects,
  lookAt,
  OLD_SECRET,
  PAY,
  PAYMENT,
  payAt,
  untilLapsed,
  untilState,
} from './payments.ts'

const PROGRAM = new URL('../programs/payment.ts', import.meta.url)
const LEASE_MS = 500
const SETTLE_MS = 300

interface SceneOptions {
  readonly idempotent: boolean
  /** How often the workers look at what is in doubt. */
  readonly looks?: number
  readonly deadlineMs?: number
  /** Whether the call ends with its signal. By default it does not: the worst case. */
  readonly listens?: boolean
}

/** An owner that has stopped just before it sends, and whose lease is over. */
async function scene({ idempotent, looks = 1_000, deadlineMs, listens = false }: SceneOptions) {
  const database = await freshDatabase()
  const pool = database.direct({ max: 2 })
  await createEffects(pool)
  const gateway = await startGateway({ dedupe: idempotent })
  cleanUpLater(() => gateway.stop())
  const client = gatewayClient(gateway.url)
  cleanUpLater(async () => client.close())
  const key = randomUUID()
  const env = {
    ...database.environment,
    GATEWAY_URL: gateway.url,
    LEASE_MS: `${LEASE_MS}`,
    SETTLE_MS: `${SETTLE_MS}`,
    DEDUPES: idempotent ? 'yes' : 'no',
    LOOKS: `${looks}`,
  }
  const own = {
    ...(deadlineMs !== undefined && { DEADLINE_MS: `${deadlineMs}` }),
    ...(!listens && { DEAF: 'yes' }),
  }
  const owner = new Talker(PROGRAM, { ...env, ...own, KEY: key, STOP: 'yes' })
  expect(await owner.hear()).toEqual({ stopping: true })
  await untilLapsed(pool, key)
  const pay = payAt(client, { idempotent, visibleWithinMs: SETTLE_MS })
  const once = onlyonce({
    store: postgres({ pool: database.pool({ max: 4 }), pooler: POOLER }),
    secret: OLD_SECRET,
    operations: [pay],
  })
  cleanUpLater(() => once.close({ maxMs: 1_000 }))
  const call = { account: ACCOUNT, key, input: PAYMENT }
  return {
    pool,
    key,
    owner,
    once,
    retry: () => once.run(pay, call),
    id: { account: ACCOUNT, operation: PAY, key },
    startWorkers: () => new Talker(PROGRAM, env),
    charges: async () => (await gateway.journal()).filter(({ kind }) => kind === 'charge'),
    received: async () => (await gateway.state()).received,
  }
}

/** Until whatever was sent before the lease was over would be seen by a lookup. */
async function untilSettled(pool: pg.Pool, key: string): Promise<void> {
  await pool.query(
    `SELECT pg_sleep_until(greatest(changed_at, sent_until) + $2::int * interval '1 ms') FROM onlyonce.records
     WHERE key = $1`,
    [key, SETTLE_MS],
  )
}

describe('a process that is stopped just before it sends, and goes on when all is over', () => {
  it.each([false, true])(
    'sends what was done already, where a key is done once (listens: %s)',
    async (listens) => {
      const { pool, key, owner, startWorkers, charges, received, retry } = await scene({
        idempotent: true,
        listens,
      })
      expect((await received()).charge).toBe(0)
      startWorkers()
      await untilState(pool, key, 'completed')
      await untilSettled(pool, key)
      expect((await received()).charge).toBe(1)
      owner.send('SIGCONT')
      expect(await owner.hear()).toEqual({ code: 'lease_lost' })
      // Nobody can take back what is on its way; only a call that listens may be stopped in time.
      if (!listens) expect((await received()).charge).toBe(2)
      const [charge, ...more] = await charges()
      expect(more).toEqual([])
      expect(await retry()).toMatchObject({ outcome: 'replayed', status: 201, value: { charge: charge!.id } })
      expect(await lookAt(pool, key)).toMatchObject({ state: 'completed', fence: 2 })
      expect(await countNotes(pool, `${key} settled`)).toBe(1)
    },
  )

  it('makes the only call where nobody dedupes, and the record is in doubt until it is found', async () => {
    const { pool, key, owner, startWorkers, charges, received, retry } = await scene({ idempotent: false })
    startWorkers()
    await untilState(pool, key, 'unknown')
    await untilSettled(pool, key)
    // Looked at all the time, and nothing was found: that is no proof, and so nobody sends.
    expect((await received()).lookup).toBeGreaterThan(1)
    expect((await received()).charge).toBe(0)
    const told = await retry()
    expect(['unknown', 'in_progress']).toContain(told.outcome)
    expect(['unknown', 'in_progress']).toContain((await lookAt(pool, key))!.state)
    owner.send('SIGCONT')
    expect(await owner.hear()).toEqual({ code: 'lease_lost' })
    await untilState(pool, key, 'completed')
    const [charge, ...more] = await charges()
    expect(more).toEqual([])
    expect((await received()).charge).toBe(1)
    expect(await retry()).toMatchObject({ outcome: 'replayed', value: { charge: charge!.id } })
    expect(await countNotes(pool, `${key} settled`)).toBe(1)
  })

  it('leaves it to the operator where it was parked before, and the record claims nothing', async () => {
    const { pool, key, owner, id, once, startWorkers, charges, received, retry } = await scene({
      idempotent: false,
      looks: 3,
    })
    startWorkers()
    await untilState(pool, key, 'parked')
    expect((await received()).charge).toBe(0)
    owner.send('SIGCONT')
    expect(await owner.hear()).toEqual({ code: 'lease_lost' })
    const [charge, ...more] = await charges()
    expect(more).toEqual([])
    expect(await retry()).toMatchObject({ outcome: 'parked' })
    await operator(once).unpark(id, { by: 'ann', why: 'there is a charge at the gateway' })
    await untilState(pool, key, 'completed')
    expect(await retry()).toMatchObject({ outcome: 'replayed', value: { charge: charge!.id } })
    expect((await received()).charge).toBe(1)
  })

  it('charges once also where it was given up after its deadline, and the client retries', async () => {
    const { pool, key, owner, startWorkers, charges, retry } = await scene({
      idempotent: true,
      deadlineMs: 400,
    })
    startWorkers()
    // Nothing was found when the settle window was over, by which all that is sent in a lease can be seen.
    await untilState(pool, key, 'retryable')
    expect(await charges()).toEqual([])
    owner.send('SIGCONT')
    expect(await owner.hear()).toEqual({ code: 'lease_lost' })
    const [charge, ...more] = await charges()
    expect(more).toEqual([])
    expect(await retry()).toMatchObject({ outcome: 'executed', value: { charge: charge!.id } })
    expect(await charges()).toHaveLength(1)
  })
})
