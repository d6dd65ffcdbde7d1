import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { onlyonce } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { SECRET } from './shop.ts'

/** Two timers end the time of a handler: that of its client, and that of its heartbeat. Which one is first differs. */
test('a handler whose client is told that its time is over is told so by its signal', async () => {
  const once = onlyonce({ store: memory(), secret: SECRET })
  const signals: AbortSignal[] = []
  const send = async (inProgressMaxMs: number) => {
    const options = { account: () => 'acct_1', operation: 'things.create', leaseMs: 60, inProgressMaxMs }
    const route = idempotent(once, options, (_, { idempotency }) => {
      signals.push(idempotency!.signal)
      return new Promise<Response>(() => {})
    })
    const headers = { 'idempotency-key': randomUUID() }
    const answer = await route(new Request('http://localhost/things', { method: 'POST', headers }))
    const told = signals.filter(({ aborted }) => aborted).length
    return { status: answer.status, told }
  }
  for (let i = 1; i <= 12; i += 1) expect(await send(61 + i)).toEqual({ status: 503, told: i })
  expect(signals[0]!.reason).toMatchObject({ code: 'outcome_unknown' })
})
