import type pg from 'pg'
import { describe, expectTypeOf, it } from 'vitest'
import { onlyonce } from '../index.ts'
import { postgres } from '../store/postgres/index.ts'
import type { Worker } from '../workers/index.ts'
import {
  httpPublisher,
  inbox,
  type OutboxEvent,
  outbox,
  type PublishContext,
  relay,
  type Staged,
} from './index.ts'

const once = onlyonce({ store: postgres({ connectionString: '' }), secret: '' })
const { emit, stage } = outbox(once)
declare const client: pg.PoolClient
declare const pool: pg.Pool

describe('the outbox', () => {
  it('takes any transaction: ours, or that of a client', () => {
    once.transaction({ account: 'a', operation: 'o', key: 'k' }, async (tx) => {
      await emit(tx, { account: 'a', type: 't' })
    })
    expectTypeOf(
      emit(client, [{ account: 'a', type: 't', payload: 1, aggregate: 'x' }]),
    ).resolves.toEqualTypeOf<readonly string[]>()
    // @ts-expect-error a pool gives each statement another connection, and has no transaction
    emit(pool, { account: 'a', type: 't' })
    // @ts-expect-error the same
    stage(pool, { account: 'a', job: 'j' })
    // @ts-expect-error there is no event without an account
    emit(client, { type: 't' })
  })

  it('answers one job with one, and a list with a list', () => {
    const job = { account: 'a', job: 'j' }
    expectTypeOf(stage(client, job)).resolves.toEqualTypeOf<Staged>()
    expectTypeOf(stage(client, [job])).resolves.toEqualTypeOf<readonly Staged[]>()
  })

  it('gives the value of what is done for a message', async () => {
    const message = { account: 'a', source: 's', messageId: 'm' }
    const result = await inbox(once).once(client, message, async () => 5)
    if (result.outcome === 'executed') expectTypeOf(result.value).toEqualTypeOf<number>()
    else expectTypeOf(result).toEqualTypeOf<{ readonly outcome: 'seen' }>()
  })

  it('is taken out by a worker, to functions and publishers', () => {
    const worker = relay(once, {
      destinations: {
        log: async (events, context) => {
          expectTypeOf(events).toEqualTypeOf<readonly OutboxEvent[]>()
          expectTypeOf(context).toEqualTypeOf<PublishContext>()
        },
        http: { publisher: httpPublisher({ url: 'https://a' }), types: ['t'] },
      },
      jobs: { j: async ({ payload }) => expectTypeOf(payload).toEqualTypeOf<unknown>() },
    })
    expectTypeOf(worker).toExtend<Worker>()
  })
})
