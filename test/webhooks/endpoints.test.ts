import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { LIMITS } from '../../src/entries/limits.ts'
import { webhooks } from '../../src/webhooks/index.ts'
import { openShop } from '../contract/shop.ts'
import { runDry } from '../outbox/office.ts'
import { waitUntil } from '../setup/wait.ts'
import { account, type Got, openDesk, openReceiver } from './desk.ts'

const other = 'acct_2:test'
const unknown = { code: 'webhook_endpoint_unknown', status: 404 }
const url = 'https://shop.example/hooks'

const verifies = (secret: string, { body, headers }: Got) => {
  try {
    new Webhook(secret).verify(body.toString(), headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}

describe('endpoints', () => {
  it('are made, listed, changed, disabled, enabled and removed', async () => {
    const { endpoints } = webhooks((await openShop()).open())
    const { endpoint, secret } = await endpoints.create({ account, url, types: ['a', 'b.*', 'a'] })
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(endpoint).toEqual({
      id: expect.stringMatching(/^we_[0-9a-f-]{36}$/),
      url,
      types: ['a', 'b.*'],
      description: null,
      state: 'enabled',
      disabledWhy: null,
      createdAt: expect.any(Number),
      changedAt: expect.any(Number),
    })
    const name = { account, id: endpoint.id }
    expect(await endpoints.get(name)).toEqual(endpoint)
    expect(JSON.stringify(await endpoints.list({ account }))).not.toContain(secret.slice(6))
    expect(await endpoints.update({ ...name, description: 'mine' })).toMatchObject({
      types: ['a', 'b.*'],
      url,
    })
    const changed = { types: null, url: 'https://shop.example/other' }
    expect(await endpoints.update({ ...name, ...changed })).toMatchObject({ ...changed, description: 'mine' })
    expect(await endpoints.disable(name)).toMatchObject({ state: 'disabled', disabledWhy: 'asked' })
    expect(await endpoints.update({ ...name, description: null })).toMatchObject({
      state: 'disabled',
      description: null,
    })
    expect(await endpoints.enable(name)).toMatchObject({ state: 'enabled', disabledWhy: null })
    await endpoints.remove(name)
    await expect(endpoints.get(name)).rejects.toMatchObject(unknown)
    await expect(endpoints.remove(name)).rejects.toMatchObject(unknown)
    expect(await endpoints.list({ account })).toEqual({ items: [], cursor: null })
  })

  it('of another account are not there', async () => {
    const { endpoints, replay } = webhooks((await openShop()).open())
    const { endpoint } = await endpoints.create({ account, url })
    const foreign = { account: other, id: endpoint.id }
    for (const call of [
      endpoints.get,
      endpoints.update,
      endpoints.rotateSecret,
      endpoints.enable,
      endpoints.disable,
      endpoints.remove,
    ]) {
      await expect(call(foreign)).rejects.toMatchObject(unknown)
    }
    const message = 'evt_019a0000-0000-7000-8000-000000000001'
    await expect(replay({ account: other, endpoint: endpoint.id, message })).rejects.toMatchObject(unknown)
    expect((await endpoints.list({ account: other })).items).toEqual([])
    expect(await endpoints.get({ account, id: endpoint.id })).toEqual(endpoint)
  })

  it('are refused where they are not valid, and where there are too many', async () => {
    const shop = await openShop()
    const { endpoints } = webhooks(shop.open())
    const invalid = { code: 'webhook_endpoint_invalid', status: 400 }
    for (const types of [
      [],
      [''],
      ['*'],
      ['a*'],
      ['a.*.b'],
      [7],
      'a',
      ['a\0'],
      Array(101).fill('a'),
      ['x'.repeat(256)],
    ]) {
      await expect(endpoints.create({ account, url, types: types as string[] })).rejects.toMatchObject(
        invalid,
      )
    }
    for (const description of ['', 'a\0', 'x'.repeat(1_001), 7]) {
      await expect(
        endpoints.create({ account, url, description: description as string }),
      ).rejects.toMatchObject(invalid)
    }
    await expect(endpoints.create({ account: '', url })).rejects.toMatchObject({ code: 'account_invalid' })
    for (const id of ['', 'we_1', "we_'; DROP TABLE", 'evt_019a0000-0000-7000-8000-000000000001', 7]) {
      await expect(endpoints.get({ account, id: id as string })).rejects.toMatchObject(unknown)
    }
    const { endpoint } = await endpoints.create({ account, url })
    const update = endpoints.update({ account, id: endpoint.id, url: 'https://127.0.0.1/' })
    await expect(update).rejects.toMatchObject({ code: 'webhook_url_refused' })
    // At once: those that come together do not all find the last place.
    const rest = Array.from({ length: LIMITS.webhookEndpointsMax + 10 }, (_, n) =>
      endpoints.create({ account, url: `${url}/${n}` }),
    )
    const made = (await Promise.allSettled(rest)).filter(({ status }) => status === 'fulfilled')
    expect(made).toHaveLength(LIMITS.webhookEndpointsMax - 1)
    const more = endpoints.create({ account, url: `${url}/more` })
    await expect(more).rejects.toMatchObject({ code: 'webhook_endpoints_too_many', status: 409 })
    await endpoints.create({ account: other, url })
    await endpoints.remove({ account, id: endpoint.id })
    await endpoints.create({ account, url })
  })
})

it('endpoints of an account are made one after the other: the second sees what the first has made', async () => {
  const shop = await openShop()
  const once = shop.open()
  await once.start()
  const { endpoints } = webhooks(once)
  const holder = await shop.database.direct({ max: 1 }).connect()
  const name = `hashtextextended('onlyonce webhook endpoints ${account}', 0)`
  await holder.query(`SELECT pg_advisory_lock(${name})`)
  const made = endpoints.create({ account, url })
  await waitUntil('it waits for its turn', async () => {
    const { rows } = await shop.observer.query(
      `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    )
    return rows.length === 1
  })
  // Another account has a turn of its own.
  await endpoints.create({ account: other, url })
  await holder.query(`SELECT pg_advisory_unlock(${name})`)
  holder.release()
  expect((await made).endpoint.url).toBe(url)
})

describe('a URL', () => {
  const taken = { code: 'webhook_url_taken', status: 409 }

  it('has one endpoint in an account, however it is written and however many ask at once', async () => {
    const { endpoints } = webhooks((await openShop()).open())
    const asked = await Promise.allSettled(
      Array.from({ length: 8 }, () => endpoints.create({ account, url: 'https://shop.example/one' })),
    )
    expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const same of [
      'https://SHOP.example/one',
      'https://shop.example:443/one',
      'https://shop.example/a/../one',
    ]) {
      await expect(endpoints.create({ account, url: same })).rejects.toMatchObject(taken)
    }
    await endpoints.create({ account: other, url: 'https://shop.example/one' })
    const { endpoint } = await endpoints.create({ account, url: 'https://shop.example/two' })
    const name = { account, id: endpoint.id }
    await expect(endpoints.update({ ...name, url: 'https://shop.example/one' })).rejects.toMatchObject(taken)
    expect(await endpoints.update({ ...name, url: 'https://shop.example/two' })).toMatchObject({
      id: endpoint.id,
    })
    await endpoints.remove(name)
    await endpoints.create({ account, url: 'https://shop.example/two' })
  })
})

describe('secrets', () => {
  it('rotate: the old one signs beside the new one until its time is over', async () => {
    const desk = await openDesk()
    const receiver = await openReceiver()
    const { endpoint, secret: first } = await desk.hooks.endpoints.create({ account, url: receiver.url })
    const name = { account, id: endpoint.id }
    const { secret: second } = await desk.hooks.endpoints.rotateSecret({ ...name, keepMs: 3_600_000 })
    await desk.send(1)
    expect(receiver.got[0]!.headers['webhook-signature']).toMatch(/^v1,\S+ v1,\S+$/)
    expect([first, second].map((secret) => verifies(secret, receiver.got[0]!))).toEqual([true, true])
    await desk.shop.observer.query(
      'UPDATE onlyonce.webhook_secrets SET expires_at = clock_timestamp() WHERE expires_at IS NOT NULL',
    )
    await desk.send(1)
    expect([first, second].map((secret) => verifies(secret, receiver.got[1]!))).toEqual([false, true])
    const { secret: third } = await desk.hooks.endpoints.rotateSecret(name)
    await desk.send(1)
    expect([first, second, third].map((secret) => verifies(secret, receiver.got[2]!))).toEqual([
      false,
      false,
      true,
    ])
    expect(await desk.rows('webhook_secrets')).toHaveLength(1)
    for (const keepMs of [-1, 0.5, 31 * 24 * 3_600_000]) {
      const rotated = desk.hooks.endpoints.rotateSecret({ ...name, keepMs })
      await expect(rotated).rejects.toMatchObject({ code: 'webhook_endpoint_invalid' })
    }
  })

  it('rotate many times, also at once, and stay a bounded number', async () => {
    const desk = await openDesk()
    const receiver = await openReceiver()
    const { endpoint } = await desk.hooks.endpoints.create({ account, url: receiver.url })
    const rotate = () => desk.hooks.endpoints.rotateSecret({ account, id: endpoint.id, keepMs: 3_600_000 })
    const secrets = (await Promise.all(Array.from({ length: 12 }, rotate))).map(({ secret }) => secret)
    await desk.send(1)
    expect(receiver.got[0]!.headers['webhook-signature']!.toString().split(' ')).toHaveLength(8)
    expect(secrets.filter((secret) => verifies(secret, receiver.got[0]!))).toHaveLength(8)
    const rows = await desk.rows('webhook_secrets')
    expect(rows.filter(({ expires_at: expiresAt }) => expiresAt === null)).toHaveLength(1)
    await desk.hooks.endpoints.remove({ account, id: endpoint.id })
    expect(await desk.rows('webhook_secrets')).toEqual([])
  })

  it('are sealed where encryption is on, bound to their endpoint, and needed at the start', async () => {
    const encryption = { current: 'a', keys: { a: randomBytes(32) } }
    const desk = await openDesk({}, { encryption })
    const receiver = await openReceiver()
    const { secret } = await desk.hooks.endpoints.create({ account, url: receiver.url })
    const { endpoint: second } = await desk.hooks.endpoints.create({ account, url: `${receiver.url}?2` })
    await desk.hooks.endpoints.disable({ account, id: second.id })
    const [row] = await desk.rows('webhook_secrets')
    expect(row!.key_id).toBe('a')
    expect((row!.secret as Buffer).includes(Buffer.from(secret.slice(6), 'base64'))).toBe(false)
    await desk.send(1)
    expect(verifies(secret, receiver.got[0]!)).toBe(true)
    // Exchanged for that of another endpoint, it opens nowhere; the delivery fails and waits.
    await desk.hooks.endpoints.enable({ account, id: second.id })
    await desk.shop.observer.query(`UPDATE onlyonce.webhook_secrets SET secret = $1`, [row!.secret])
    await desk.send(1)
    expect(receiver.got).toHaveLength(2)
    const { items } = await desk.hooks.deliveries.list({ account, endpoint: second.id })
    expect(items).toMatchObject([{ state: 'pending', failure: { code: 'seal_broken' } }])
    const lacking = desk.shop.open({ encryption: { current: 'b', keys: { b: randomBytes(32) } } })
    await expect(lacking.start()).rejects.toMatchObject({ code: 'key_ring_incomplete' })
  })

  it('are plain without encryption, and stay readable when it is turned on', async () => {
    const desk = await openDesk()
    const receiver = await openReceiver()
    const { secret } = await desk.hooks.endpoints.create({ account, url: receiver.url })
    await desk.emit(1)
    await desk.fanOut()
    const once = desk.shop.open({ encryption: randomBytes(32) })
    await runDry(webhooks(once, { allowPrivate: true }).deliverer())
    expect(verifies(secret, receiver.got[0]!)).toBe(true)
  })
})
