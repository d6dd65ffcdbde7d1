import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fastify } from 'fastify'
import { beforeAll, describe, expect, test } from 'vitest'
import { idempotency, idempotent } from '../../src/http/adapters/fastify/index.ts'
import { idempotent as onNode } from '../../src/http/adapters/node/index.ts'
import { notExecuted, OnlyonceError, operation, reply } from '../../src/index.ts'
import { leaveEffect, makeCall, openShop, type Shop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const fail = () => {
  throw new Error('It cannot be read.')
}

/** What code can throw, and no code can look into. */
const UNREADABLE: Readonly<Record<string, () => unknown>> = {
  'a revoked proxy': () => {
    const { proxy, revoke } = Proxy.revocable(new Error('socket hang up'), {})
    revoke()
    return proxy
  },
  'a proxy whose traps throw': () =>
    new Proxy(notExecuted(), { has: fail, get: fail, getPrototypeOf: fail, getOwnPropertyDescriptor: fail }),
  'an error whose code throws': () => Object.defineProperty(notExecuted(), 'code', { get: fail }),
  'an error whose cause throws': () => Object.defineProperty(new Error('wrapped'), 'cause', { get: fail }),
}

/** Waits for it, and looks at nothing of what was thrown but which object it is. */
async function thrownBy(promise: Promise<unknown>): Promise<{ readonly thrown: unknown }> {
  try {
    await promise
  } catch (thrown) {
    return { thrown }
  }
  throw new Error('It did not fail.')
}

describe.each(Object.entries(UNREADABLE))('%s', (name, make) => {
  test('is not known as an error of ours', () => {
    class Own extends OnlyonceError {}
    expect((make() as object) instanceof OnlyonceError).toBe(false)
    expect((make() as object) instanceof Own).toBe(false)
  })

  test('leaves a call in doubt that threw it, and the call is not made again', async () => {
    const once = shop.open()
    let calls = 0
    const pay = operation(`unreadable.${Object.keys(UNREADABLE).indexOf(name)}`, async (op, _: unknown) => {
      await op.call('charged', {
        idempotent: false,
        call: async () => {
          calls += 1
          throw make()
        },
      })
      return reply(201)
    })
    const { account, key, input } = makeCall()
    for (const _ of [1, 2])
      expect(await once.run(pay, { account, key, input })).toMatchObject({ outcome: 'unknown' })
    expect(calls).toBe(1)
  })

  test('leaves a transaction, a step and a handler as it is', async () => {
    const once = shop.open()
    const thrown = make()
    const call = makeCall()
    const throwing = async (tx: Parameters<typeof leaveEffect>[0]) => {
      await leaveEffect(tx, call.key)
      throw thrown
    }
    const [transaction, handler, step] = ['transaction', 'handler', 'step'].map((kind) =>
      makeCall({ key: call.key, operation: `unreadable.${kind}` }),
    )
    expect((await thrownBy(once.transaction(transaction!, throwing))).thrown === thrown).toBe(true)
    expect((await once.explain(transaction!)).state).toBe('retryable')
    const { operation: _, ...asked } = step!
    const stepping = operation('unreadable.step', (op, _: unknown) => op.transaction('noted', throwing))
    expect((await thrownBy(once.run(stepping, asked))).thrown === thrown).toBe(true)
    expect((await once.explain(step!)).state).toBe('retryable')
    expect(await shop.countEffects(call.key)).toBe(0)
    const handled = once.execute(handler!, async () => {
      throw thrown
    })
    expect((await thrownBy(handled)).thrown === thrown).toBe(true)
    expect((await once.explain(handler!)).state).toBe('completed')
  })

  test('rolls a transaction back in Fastify', async () => {
    const once = shop.open()
    const app = fastify({ forceCloseConnections: true })
    cleanUpLater(() => app.close())
    await app.register(idempotency, { once, account: () => 'acct_1' })
    app.post('/things', { preHandler: idempotent({ protect: 'transaction' }) }, async (request) => {
      const { tx, key } = request.idempotency as { tx: Parameters<typeof leaveEffect>[0]; key: string }
      await leaveEffect(tx, key)
      throw make()
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    const key = randomUUID()
    // What Fastify itself makes of such an error is its own.
    await post(app.server.address(), key).catch(() => {})
    expect(await shop.countEffects(key)).toBe(0)
  })

  test('is answered with a failure on node:http', async () => {
    const once = shop.open()
    const options = { account: () => 'acct_1', operation: 'unreadable.node' }
    const server = createServer(
      onNode(once, options, async () => {
        throw make()
      }),
    )
    cleanUpLater(async () => void server.close())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    expect((await post(server.address(), randomUUID())).status).toBeGreaterThanOrEqual(500)
  })
})

function post(address: ReturnType<ReturnType<typeof createServer>['address']>, key: string) {
  return fetch(`http://127.0.0.1:${(address as AddressInfo).port}/things`, {
    method: 'POST',
    headers: { 'idempotency-key': key, connection: 'close' },
    signal: AbortSignal.timeout(5_000),
  })
}
