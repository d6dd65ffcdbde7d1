import { expect } from 'vitest'
import { notExecuted } from '../../../src/index.ts'
import { leaveEffect } from '../../contract/shop.ts'
import { topic } from '../case.ts'
import { expectProblem, expectReplay } from '../expectations.ts'
import { PARSER_MAX_BYTES, type Result } from '../under-test.ts'

const WAYS = ['throw', 'reject', 'next'] as const

export const failures = topic('Failures', (one) => {
  for (const way of WAYS) {
    const fail = (error: Error): Result => ({ do: way, error })

    one(`an error (${way}) is answered by the framework, stored, and never run again`, async (bench) => {
      const served = await bench.serve({ handle: () => fail(new Error('boom')) })
      const { first, again } = await served.twice()
      expect([first.status, again.status]).toEqual([500, 500])
      expect(again.headers['idempotent-replayed']).toBe('true')
      expect(served.runs).toBe(1)
    })

    one(
      `an error (${way}) keeps its own status, and is replayed as it was answered`,
      async (bench) => {
        const error = () => Object.assign(new Error('poor'), { status: 402, statusCode: 402 })
        const served = await bench.serve({ handle: () => fail(error()) })
        const { first, again } = await served.twice()
        expect(first.status).toBe(402)
        expectReplay(first, again)
        expect(served.runs).toBe(1)
      },
      ['error_reply'],
    )

    one(`notExecuted() (${way}) is answered by a problem, and the same request runs again`, async (bench) => {
      const served = await bench.serve({
        handle: (_, runs) =>
          runs === 1 ? fail(notExecuted()) : { do: 'json', status: 201, value: { run: runs } },
      })
      const { first, again } = await served.twice()
      expectProblem(first, 'not_executed')
      expect(again.json()).toEqual({ run: 2 })
      expect(again.headers['idempotent-replayed']).toBeUndefined()
    })

    one(
      `notExecuted() (${way}) in a transaction is answered by a problem, and rolled back`,
      async (bench) => {
        const served = await bench.serve({
          policy: { protect: 'transaction' },
          async handle({ once }, runs) {
            await leaveEffect(once!.tx, once!.key)
            return runs === 1 ? fail(notExecuted()) : { do: 'json', status: 201, value: {} }
          },
        })
        const key = crypto.randomUUID()
        const { first, again } = await served.twice({ key })
        expectProblem(first, 'not_executed')
        expect([again.status, await bench.shop.countEffects(key)]).toEqual([201, 1])
      },
    )

    one(`an error (${way}) in a transaction rolls back, and the same request runs again`, async (bench) => {
      const note = crypto.randomUUID()
      const served = await bench.serve({
        policy: { protect: 'transaction' },
        async handle({ once }, runs) {
          await once!.tx.query('INSERT INTO effects (note) VALUES ($1)', [note])
          return runs === 1 ? fail(new Error('boom')) : { do: 'json', status: 201, value: { run: runs } }
        },
      })
      const { first, again } = await served.twice()
      expect([first.status, again.status]).toEqual([500, 201])
      expect(await bench.shop.countEffects(note)).toBe(1)
    })

    one(
      `an error (${way}) with a status of its own in a transaction rolls back all the same`,
      async (bench) => {
        const note = crypto.randomUUID()
        const error = Object.assign(new Error('poor'), { status: 402, statusCode: 402 })
        const served = await bench.serve({
          policy: { protect: 'transaction' },
          async handle({ once }, runs) {
            await once!.tx.query('INSERT INTO effects (note) VALUES ($1)', [note])
            return runs === 1 ? fail(error) : { do: 'json', status: 201, value: { run: runs } }
          },
        })
        const { again } = await served.twice()
        expect(again.json()).toEqual({ run: 2 })
        expect(await bench.shop.countEffects(note)).toBe(1)
      },
    )
  }

  for (const at of ['at once', 'later'] as const) {
    const replyAndThrow = (runs: number): Result | Promise<Result> => {
      const result: Result =
        runs === 1
          ? { do: 'json_and_throw', status: 201, value: { run: runs }, error: new Error('boom') }
          : { do: 'json', status: 201, value: { run: runs } }
      return at === 'at once' ? result : new Promise((resolve) => setImmediate(resolve, result))
    }

    one(
      `a transaction that throws (${at}) behind its reply is rolled back, and its reply is not sent`,
      async (bench) => {
        const served = await bench.serve({
          policy: { protect: 'transaction' },
          handle({ once }, runs) {
            const { tx, key } = once!
            if (at === 'later') return leaveEffect(tx, key).then(() => replyAndThrow(runs))
            // Not awaited: the transaction waits for it before it ends.
            leaveEffect(tx, key).catch(() => {})
            return replyAndThrow(runs)
          },
        })
        const key = crypto.randomUUID()
        const { first, again } = await served.twice({ key })
        expectProblem(first, 'not_applied')
        expect([again.json(), await bench.shop.countEffects(key)]).toEqual([{ run: 2 }, 1])
      },
      ['reply_sent'],
    )

    one(
      `a handler that throws (${at}) behind its reply has replied`,
      async (bench) => {
        const served = await bench.serve({ handle: (_, runs) => replyAndThrow(runs) })
        const { first, again } = await served.twice()
        expect([first.status, first.json()]).toEqual([201, { run: 1 }])
        expectReplay(first, again)
        expect(served.runs).toBe(1)
      },
      ['reply_sent'],
    )
  }

  for (const thrown of [undefined, null, false, 'route', 'router']) {
    one(`what a function of the policy throws (${thrown}) never lets the handler run`, async (bench) => {
      const served = await bench.serve([
        { path: '/admit', policy: { admit: () => Promise.reject(thrown) } },
        {
          path: '/validate',
          policy: {
            validate: { '~standard': { version: 1, vendor: 'x', validate: () => Promise.reject(thrown) } },
          },
        },
      ])
      for (const path of ['/admit', '/validate']) {
        const { status } = await served.send({ path })
        expect([path, status, served.runs]).toEqual([path, 500, 0])
      }
    })
  }

  one('context.notExecuted() lets the request run again, whatever the reply', async (bench) => {
    const served = await bench.serve({
      handle({ once }, runs) {
        if (runs === 1) once!.notExecuted()
        return { do: 'json', status: 200, value: { run: runs } }
      },
    })
    const { first, again } = await served.twice()
    expect([first.json(), again.json()]).toEqual([{ run: 1 }, { run: 2 }])
  })

  one(
    'the 404 of the framework is stored like any other reply',
    async (bench) => {
      const served = await bench.serve({ handle: () => ({ do: 'not_found' }) })
      const { first, again } = await served.twice()
      expect(first.status).toBe(404)
      expectReplay(first, again)
      expect(served.runs).toBe(1)
    },
    ['not_found'],
  )

  one('a path that nobody serves claims no key', async (bench) => {
    const served = await bench.serve()
    const { first, again } = await served.twice({ path: '/nowhere' })
    for (const { status, headers } of [first, again]) {
      expect([status, headers['idempotent-replayed']]).toEqual([404, undefined])
    }
  })

  one(
    'malformed JSON is refused, and claims no key',
    async (bench) => {
      const served = await bench.serve()
      const key = crypto.randomUUID()
      expectProblem(await served.send({ key, body: '{"a":' }), 'json_malformed')
      expect((await served.send({ key, body: { a: 1 } })).status).toBe(201)
      expect(served.runs).toBe(1)
    },
    ['layer_first'],
  )

  one(
    'what a parser before the layer refuses claims no key',
    async (bench) => {
      const served = await bench.serve({ order: 'parser_first_bytes_kept' })
      const key = crypto.randomUUID()
      expect((await served.send({ key, body: '{"a":' })).status).toBe(400)
      const large = { text: 'x'.repeat(PARSER_MAX_BYTES) }
      expect((await served.send({ key, body: large })).status).toBe(413)
      expect((await served.send({ key, body: { a: 1 } })).status).toBe(201)
      expect(served.runs).toBe(1)
    },
    ['own_parser', 'bytes_kept'],
  )

  one(
    'what a parser behind the layer refuses never reaches the handler',
    async (bench) => {
      const served = await bench.serve()
      const { first, again } = await served.twice({ body: { text: 'x'.repeat(PARSER_MAX_BYTES) } })
      expect([first.status, again.status]).toEqual([413, 413])
      expect(Buffer.compare(first.body, again.body)).toBe(0)
      expect(served.runs).toBe(0)
    },
    ['own_parser'],
  )

  one(
    'a body over the limit of the layer is 413, and the connection goes on',
    async (bench) => {
      const served = await bench.serve()
      const text = 'x'.repeat(2 * 1_048_576)
      expectProblem(await served.send({ body: { text } }), 'body_too_large')
      expect((await served.send()).status).toBe(201)
      expect(served.runs).toBe(1)
    },
    ['layer_first'],
  )

  one('a handler that is declared rerunnable runs again after it failed', async (bench) => {
    const served = await bench.serve({
      policy: { rerunnable: true },
      handle: (_, runs) =>
        runs === 1
          ? { do: 'reject', error: new Error('boom') }
          : { do: 'json', status: 201, value: { run: 2 } },
    })
    const { first, again } = await served.twice()
    expect([first.status, again.status]).toEqual([500, 201])
  })
})
