import { expect } from 'vitest'
import { beginOutside, leaveEffect, makeGate } from '../../contract/shop.ts'
import { waitUntil } from '../../setup/wait.ts'
import { type Bench, topic } from '../case.ts'
import { expectProblem, expectReplay } from '../expectations.ts'

const OPERATION = 'things.create'

export const durability = topic('Nothing leaves before it is durable', (one) => {
  one('transaction: effects, record and reply are one commit', async (bench) => {
    const served = await bench.serve({
      policy: { protect: 'transaction' },
      async handle({ once, body }) {
        await leaveEffect(once!.tx, (body as { note: string }).note)
        return { do: 'json', status: 201, value: { at: performance.now() } }
      },
    })
    const note = crypto.randomUUID()
    const { first, again } = await served.twice({ body: { note } })
    expectReplay(first, again)
    expect(await bench.shop.countEffects(note)).toBe(1)
  })

  one('transaction: the reply waits for the commit', async (bench) => {
    const key = crypto.randomUUID()
    const served = await bench.serve({ policy: { protect: 'transaction', operation: OPERATION } })
    const outside = await beginOutside(bench.shop)
    await outside.query(
      `INSERT INTO onlyonce.records (account, operation, key, state, fence, attempt_id, owner, attempted_at,
         fingerprint, fingerprint_key_id, created_at, changed_at, error_code, error_message)
       VALUES ('acct_1', $1, $2, 'unknown', 1, gen_random_uuid(), 'outside', now(), '\\x00', 'default', now(), now(), 'x', 'x')`,
      [OPERATION, key],
    )
    await untouchedUntil(bench, served.send({ key }), () => outside.query('ROLLBACK'))
    expect(served.runs).toBe(1)
  })

  one('handler: the reply waits for its record', async (bench) => {
    const key = crypto.randomUUID()
    const gate = makeGate()
    const served = await bench.serve({
      policy: { operation: OPERATION },
      async handle() {
        await gate.pass()
        return { do: 'json', status: 201, value: {} }
      },
    })
    const sending = served.send({ key })
    await gate.reached
    const outside = await beginOutside(bench.shop)
    await outside.query('SELECT 1 FROM onlyonce.records WHERE key = $1 FOR UPDATE', [key])
    gate.open()
    await untouchedUntil(bench, sending, () => outside.query('ROLLBACK'))
    expect((await served.send({ key })).headers['idempotent-replayed']).toBe('true')
  })

  one(
    'a duplicate that loses the race in another process is given the reply of the winner',
    async (bench) => {
      const note = crypto.randomUUID()
      const gate = makeGate()
      const route = (wait: boolean) => ({
        policy: { protect: 'transaction', operation: OPERATION } as const,
        async handle({ once }: { once: { tx: Parameters<typeof leaveEffect>[0] } | null }) {
          if (wait) await gate.pass()
          await leaveEffect(once!.tx, note)
          return { do: 'json', status: 201, value: { wait } } as const
        },
      })
      const [slow, fast] = [await bench.serve(route(true)), await bench.serve(route(false))]
      const key = crypto.randomUUID()
      const late = slow.send({ key })
      await gate.reached
      const first = await fast.send({ key })
      expect(first.json()).toEqual({ wait: false })
      gate.open()
      expectReplay(first, await late)
      expect(await bench.shop.countEffects(note)).toBe(1)
    },
  )

  one('unknown is 409 of its own type, and never runs', async (bench) => {
    const served = await bench.serve({ policy: { operation: OPERATION } })
    const key = await settledAs(bench, served, 'unknown')
    expectProblem(await served.send({ key }), 'outcome_pending', { retryAfter: true })
    expectProblem(await served.send({ key, body: { other: 1 } }), 'key_reused')
    expect(served.runs).toBe(1)
  })

  one('parked is 409 of its own type, without Retry-After, and never runs', async (bench) => {
    const served = await bench.serve({ policy: { operation: OPERATION } })
    const key = await settledAs(bench, served, 'parked')
    expectProblem(await served.send({ key }), 'parked')
    expect(served.runs).toBe(1)
  })

  one('retryable keeps its fingerprint', async (bench) => {
    const policy = { final: { 503: 'retry' } } as const
    const served = await bench.serve({ policy, handle: () => ({ do: 'json', status: 503, value: {} }) })
    const key = crypto.randomUUID()
    await served.send({ key })
    expectProblem(await served.send({ key, body: { other: 1 } }), 'key_reused')
    expect((await served.send({ key })).status).toBe(503)
    expect(served.runs).toBe(2)
  })
})

/** While the database keeps the product waiting no reply is there; afterwards one is. */
async function untouchedUntil(
  bench: Bench,
  sending: Promise<{ status: number }>,
  release: () => Promise<unknown>,
) {
  let answered = false
  const answer = sending.finally(() => {
    answered = true
  })
  await bench.shop.waitForWaiters(1)
  expect(answered).toBe(false)
  await release()
  expect((await answer).status).toBe(201)
}

/** A key that ran once, and whose record then says something else. */
async function settledAs(
  bench: Bench,
  served: { send(sent: { key: string }): Promise<unknown> },
  state: 'unknown' | 'parked',
): Promise<string> {
  const key = crypto.randomUUID()
  await served.send({ key })
  const { observer } = bench.shop
  await waitUntil('the record is there', async () => {
    const { rowCount } = await observer.query(
      `UPDATE onlyonce.records SET state = $2, expires_at = NULL, reply_status = NULL, reply_headers = NULL,
         look_at = CASE WHEN $2 = 'unknown' THEN now() + interval '1 minute' END,
         reply_body = NULL, reply_schema = NULL, error_code = 'lost', error_message = 'Lost.' WHERE key = $1`,
      [key, state],
    )
    return rowCount === 1
  })
  return key
}
