import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { derivedKey } from '../../src/entries/keys.ts'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { addEvidence, completer, reconciler } from '../../src/workers/index.ts'
import { gatewayClient, startGateway } from '../gateway/client.ts'
import type { GatewayOptions } from '../gateway/wire.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { freshDatabase } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import { Talker } from '../setup/talker.ts'
import { waitUntil } from '../setup/wait.ts'
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
const LAG_MS = 60_000

/** A service whose gateway does nothing for it: it does every call, however often it comes. */
async function scene(options: GatewayOptions = {}, lookEveryMs = 1) {
  const database = await freshDatabase()
  const pool = database.direct({ max: 2 })
  await createEffects(pool)
  const gateway = await startGateway({ dedupe: false, ...options })
  cleanUpLater(() => gateway.stop())
  const client = gatewayClient(gateway.url)
  cleanUpLater(async () => client.close())
  const pay = payAt(client, { idempotent: false })
  const once = onlyonce({
    store: postgres({ pool: database.pool({ max: 6 }), pooler: POOLER }),
    secret: OLD_SECRET,
    operations: [pay],
    reconcileAfterMs: Array.from({ length: 100 }, () => lookEveryMs),
  })
  cleanUpLater(() => once.close({ maxMs: 1_000 }))
  const key = randomUUID()
  const call = { account: ACCOUNT, key, input: PAYMENT }
  const env = { ...database.environment, GATEWAY_URL: gateway.url, DEDUPES: 'no' }
  return {
    pool,
    gateway,
    once,
    key,
    charge_key: derivedKey({ account: ACCOUNT, operation: PAY, key, step: 'charged' }),
    run: () => once.run(pay, call),
    startOwner: (changes: Record<string, string>) => new Talker(PROGRAM, { ...env, ...changes, KEY: key }),
    startWorkers: () => new Talker(PROGRAM, env),
    workOnce: async (worker: { runOnce(): Promise<{ done: number }> }) =>
      waitUntil('the worker does something', async () => (await worker.runOnce()).done > 0),
  }
}

/** Takes what the gateway announces, and keeps it as evidence once it is told whose door that is. */
async function startListener() {
  let take: (event: { key: string; charge: unknown }) => Promise<void> = async () => {}
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    await take(JSON.parse(Buffer.concat(chunks).toString('utf8')))
    response.writeHead(204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUpLater(async () => {
    server.closeAllConnections()
    server.close()
  })
  return {
    webhookUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    listenFor: (listener: typeof take) => {
      take = listener
    },
  }
}

async function sceneWithWebhooks(lookEveryMs?: number) {
  const { webhookUrl, listenFor } = await startListener()
  const here = await scene({ webhookUrl }, lookEveryMs)
  listenFor(async ({ key, charge }) => {
    await addEvidence(here.once, { account: ACCOUNT, key, result: charge })
  })
  const untilAnnounced = () =>
    waitUntil('the webhook is delivered', async () => (await here.gateway.state()).webhooks.delivered === 1)
  return { ...here, untilAnnounced }
}

describe('a charge that no lookup finds for a minute, at a gateway that does every call', () => {
  it('is not made again, and completed when it is found', async () => {
    const { pool, gateway, once, key, charge_key: chargeKey, run, workOnce } = await scene()
    await gateway.control({ fault: 'lag', ms: LAG_MS, key: chargeKey })
    await gateway.control({ fault: 'lose', at: 'after', key: chargeKey })
    expect(await run()).toMatchObject({ outcome: 'unknown' })
    for (let looks = 1; looks <= 5; looks += 1) {
      await workOnce(reconciler(once))
      expect(await lookAt(pool, key)).toMatchObject({ state: 'unknown', error_code: 'call_in_doubt' })
      expect((await gateway.state()).received).toMatchObject({ charge: 1, lookup: looks + 1 })
      await gateway.advance(LAG_MS / 6)
    }
    expect(await run()).toMatchObject({ outcome: 'unknown' })
    await gateway.advance(LAG_MS / 6)
    await workOnce(reconciler(once))
    const [charge, ...more] = await gateway.journal()
    expect(more).toEqual([])
    expect(await run()).toMatchObject({ outcome: 'replayed', status: 201, value: { charge: charge!.id } })
    expect((await gateway.state()).received.charge).toBe(1)
    expect(await countNotes(pool, `${key} settled`)).toBe(1)
  })

  it('nor where its process died before it heard anything', async () => {
    const { pool, gateway, key, charge_key: chargeKey, run, startOwner, startWorkers } = await scene()
    await gateway.control({ fault: 'lag', ms: LAG_MS, key: chargeKey })
    await gateway.control({ fault: 'hold', at: 'after', key: chargeKey })
    const owner = startOwner({ LEASE_MS: '500' })
    await waitUntil('it was charged', async () => (await gateway.journal()).length === 1)
    await owner.kill()
    startWorkers()
    await untilState(pool, key, 'unknown')
    expect((await gateway.state()).received.charge).toBe(1)
    await gateway.advance(LAG_MS)
    await untilState(pool, key, 'completed')
    const [charge, ...more] = await gateway.journal()
    expect(more).toEqual([])
    expect(await run()).toMatchObject({ outcome: 'replayed', value: { charge: charge!.id } })
    expect((await gateway.state()).received.charge).toBe(1)
  })
})

describe('a webhook that comes before the answer, which is then lost', () => {
  it('settles the call at once, and nobody is asked', async () => {
    const { gateway, charge_key: chargeKey, run, untilAnnounced } = await sceneWithWebhooks()
    await gateway.control({ fault: 'hold', at: 'after', key: chargeKey })
    await gateway.control({ fault: 'lose', at: 'after', key: chargeKey })
    const running = run()
    await untilAnnounced()
    expect((await gateway.state()).held).toEqual([chargeKey])
    await gateway.control({ release: chargeKey })
    const [charge] = await gateway.journal()
    expect(await running).toMatchObject({ outcome: 'executed', status: 201, value: { charge: charge!.id } })
    expect(await gateway.journal()).toHaveLength(1)
    expect((await gateway.state()).received).toEqual({ charge: 1, refund: 0, lookup: 0 })
  })

  it('settles it also for whoever takes over when the process died', async () => {
    const {
      pool,
      once,
      gateway,
      key,
      charge_key: chargeKey,
      run,
      startOwner,
      untilAnnounced,
      workOnce,
    } = await sceneWithWebhooks()
    await gateway.control({ fault: 'hold', at: 'after', key: chargeKey })
    const owner = startOwner({ LEASE_MS: '500' })
    await untilAnnounced()
    await owner.kill()
    await untilLapsed(pool, key)
    await workOnce(completer(once, { graceMs: 1 }))
    const [charge] = await gateway.journal()
    expect(await run()).toMatchObject({ outcome: 'replayed', value: { charge: charge!.id } })
    expect(await gateway.journal()).toHaveLength(1)
    expect((await gateway.state()).received).toEqual({ charge: 1, refund: 0, lookup: 0 })
  })

  it('comes too late to be heard before, and hurries whoever is to look', async () => {
    const {
      once,
      gateway,
      charge_key: chargeKey,
      run,
      untilAnnounced,
      workOnce,
    } = await sceneWithWebhooks(3_600_000)
    await gateway.control({ fault: 'delay', at: 'before', on: 'webhook', ms: LAG_MS, key: chargeKey })
    await gateway.control({ fault: 'lag', ms: 2 * LAG_MS, key: chargeKey })
    await gateway.control({ fault: 'lose', at: 'after', key: chargeKey })
    expect(await run()).toMatchObject({ outcome: 'unknown' })
    await gateway.advance(LAG_MS)
    await untilAnnounced()
    await workOnce(reconciler(once))
    const [charge] = await gateway.journal()
    expect(await run()).toMatchObject({ outcome: 'replayed', value: { charge: charge!.id } })
    // The one look was before the word came.
    expect((await gateway.state()).received).toEqual({ charge: 1, refund: 0, lookup: 1 })
  })
})
