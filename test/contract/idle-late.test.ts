import { randomUUID } from 'node:crypto'
import { errorMonitor } from 'node:events'
import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { operation } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { catchError, leaveEffect, makeCall, openShop, type Shop, waitUntil } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
})

const IDLE_MS = 250

/** What can be asked in a transaction, of the library or of the caller. */
interface Asked {
  // biome-ignore lint/suspicious/noExplicitAny: rows are what the statement says.
  query(text: string): Promise<{ readonly rows: any[] }>
}

/**
 * A process that reads late that the server has ended an idle transaction: it has sent its next statement by then, and takes the
 * end for the answer. `idle` waits for the end without reading it; `work.after` lets it be read behind the last statement.
 */
function openLate() {
  const pool = shop.database.direct({ max: 3 })
  const streams = new Map<number, { pause(): void; resume(): void }>()
  pool.on('connect', (client) => {
    const { processID, connection } = client as unknown as {
      processID: number
      connection: { stream: { pause(): void; resume(): void } }
    }
    streams.set(processID, connection.stream)
  })
  let paused: { resume(): void } | null = null
  const readOn = () => paused?.resume()
  const once = shop.open({
    pool,
    store: { pooler: 'none', idleInTransactionMaxMs: IDLE_MS },
    crashPoint: (point) => {
      if (point.endsWith('work.after')) readOn()
    },
  })
  const idle = async (tx: Asked) => {
    // The bound on silence comes with the last statement before it: on a busy machine an earlier one could be over too soon.
    const { rows } = await tx.query(
      `SELECT pg_backend_pid() AS pid, set_config('idle_in_transaction_session_timeout', '${IDLE_MS}', true)`,
    )
    const stream = streams.get(rows[0]!.pid)!
    stream.pause()
    paused = stream
    await waitUntil('the server has ended the transaction', async () => {
      const { rowCount } = await shop.observer.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [
        rows[0]!.pid,
      ])
      return rowCount === 0
    })
  }
  /** The statement is written before the end is read. */
  const sendLate = (tx: Asked) => {
    readOn()
    return tx.query('SELECT 1')
  }
  return { once, pool, idle, readOn, sendLate }
}

type Late = ReturnType<typeof openLate>

const NEXT = {
  'the record': async () => {},
  'a statement': async ({ sendLate }: Late, tx: Asked) => {
    await sendLate(tx)
  },
  'a statement whose error it ignores': async ({ sendLate }: Late, tx: Asked) => {
    await sendLate(tx).catch(() => {})
  },
}

describe.each(Object.entries(NEXT))('work that was idle too long, and sends %s next', (_, next) => {
  test.each(['none', 'retryable'])('on a route, where the record was %s', async (before) => {
    const late = openLate()
    let runs = 0
    const key = randomUUID()
    const route = idempotent(
      late.once,
      { account: () => 'acct_1', operation: 'payments.create', protect: 'transaction' },
      async (_request, { idempotency }) => {
        const { tx } = idempotency as unknown as { tx: PostgresTx }
        runs += 1
        await leaveEffect(tx, key)
        if (before === 'retryable' && runs === 1) throw new Error('not this time')
        await late.idle(tx)
        await next(late, tx)
        return Response.json({}, { status: 201 })
      },
    )
    const send = async () => {
      const headers = { 'Idempotency-Key': key }
      const answer = await route(new Request('http://localhost/payments', { method: 'POST', headers }))
      return { status: answer.status, ...((await answer.json()) as { code: string }) }
    }
    if (before === 'retryable') await expect(send()).rejects.toThrow('not this time')
    expect(await send()).toMatchObject({ status: 503, code: 'transaction_idle', retryable: true })
    expect(await shop.countEffects(key)).toBe(0)
    const call = { account: 'acct_1', operation: 'payments.create', key }
    expect((await late.once.explain(call)).state).toBe('retryable')
  })

  test.each(['first', 'second'])('in the %s step of an operation', async (which) => {
    const late = openLate()
    const { account, key } = makeCall()
    const saga = operation('idle.late', async (op) => {
      if (which === 'second') await op.transaction('reserved', (tx) => leaveEffect(tx, `${key}-first`))
      return await op.transaction('paid', async (tx) => {
        await leaveEffect(tx, key)
        await late.idle(tx)
        await next(late, tx)
      })
    })
    const told = await catchError(late.once.run(saga, { account, key, input: 1 }))
    expect(codesOf(told)).toContain('transaction_idle')
    expect(await shop.countEffects(key)).toBe(0)
  })
})

test('a transaction of the caller that was idle too long is told so by within', async () => {
  const late = openLate()
  const client = await late.pool.connect()
  client.on('error', () => {})
  cleanUpLater(async () => client.release(true))
  await client.query(`BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${IDLE_MS}`)
  await late.idle(client)
  const tx = {
    query: ((text: string, values?: unknown[]) => {
      late.readOn()
      return client.query(text, values)
    }) as pg.PoolClient['query'],
  }
  const told = await catchError(late.once.within(tx, makeCall(), async () => 1))
  expect(told).toMatchObject({ code: 'transaction_idle' })
})

/** How the function of within goes on while, and after, the server has ended the transaction. */
const ENDS: Readonly<Record<string, (late: Late, client: pg.PoolClient, tx: Asked) => Promise<void>>> = {
  'and the end is read as the answer to a statement of within': async ({ idle }, client) => idle(client),
  'and the end is read while no statement is under way': async ({ idle, readOn }, client) => {
    const gone = new Promise((resolve) => client.once('end', resolve))
    await idle(client)
    readOn()
    await gone
  },
  'and the end is read as the answer to a statement of the function, which ignores it': async (
    late,
    client,
    tx,
  ) => {
    await late.idle(client)
    await late.sendLate(tx).catch(() => {})
  },
}

async function beginLate(late: Late): Promise<pg.PoolClient> {
  await late.once.start()
  const client = await late.pool.connect()
  client.on('error', () => {})
  cleanUpLater(async () => client.release(true))
  await client.query('BEGIN')
  return client
}

test.each(Object.entries(ENDS))('within tells that its function was idle too long, %s', async (_, end) => {
  const late = openLate()
  const client = await beginLate(late)
  const call = makeCall()
  const told = await catchError(
    late.once.within(client, call, async (tx) => {
      await end(late, client, tx)
      // `within` sends its next statement before the end is read.
      setImmediate(late.readOn)
    }),
  )
  expect(told).toMatchObject({ code: 'transaction_idle' })
  expect(client.listenerCount(errorMonitor)).toBe(0)
  expect((await late.once.explain(call)).state).toBe('none')
})

test('what the function of within throws is its own, also where its transaction was idle', async () => {
  const late = openLate()
  const client = await beginLate(late)
  const thrown = new Error('no')
  const failing = late.once.within(client, makeCall(), async (tx) => {
    await late.idle(client)
    await late.sendLate(tx).catch(() => {})
    throw thrown
  })
  expect(await catchError(failing)).toBe(thrown)
})

test('a transaction that takes longer than the server lets it is told by within as that, and not as idle', async () => {
  const late = openLate()
  const client = await beginLate(late)
  let working = false
  // transaction_timeout is younger than the oldest server that is supported.
  const timedOut = Object.assign(new Error('too long'), { code: '25P04', severity: 'FATAL' })
  const query = (text: string, values?: unknown[]) =>
    working ? Promise.reject(timedOut) : client.query(text, values)
  const failing = late.once.within({ query } as pg.PoolClient, makeCall(), async () => {
    working = true
  })
  expect(await catchError(failing)).toMatchObject({ code: 'deadline_exceeded', cause: timedOut })
})

/** The code of an error, and of those that it names as its cause. */
function codesOf(error: { readonly code?: unknown; readonly cause?: unknown } | undefined): unknown[] {
  return error === undefined ? [] : [error.code, ...codesOf(error.cause as typeof error)]
}
