import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { type Op, onlyonce, operation, type Queryable, reply } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { recordPoints } from '../../src/testing/index.ts'
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
  note,
  OLD_SECRET,
  PAYMENT,
  type Payment,
} from './payments.ts'

const PROGRAM = new URL('../programs/taker.ts', import.meta.url)
const OPERATION = 'leases.slow'
const LEASE_MS = 600
const LEASES = 3
/** How often somebody has to have tried to take it, after its lease was over. */
const TRIES_MIN = 10

interface Heard {
  readonly done: number
  readonly outcome: string
  readonly tried: number
}

/** Somebody in another process who wants the record, and all that he was told. */
async function startTaker(env: Record<string, string>) {
  const taker = new Talker(PROGRAM, env)
  expect(await taker.hear()).toEqual({ ready: true })
  const heard: Heard[] = []
  const ended = (async () => {
    while (heard.at(-1)?.outcome !== 'replayed') heard.push((await taker.hear()) as unknown as Heard)
  })()
  ended.catch(() => {})
  return { heard, ended }
}

async function scene() {
  const database = await freshDatabase()
  const pool = database.direct({ max: 2 })
  await createEffects(pool)
  const points = recordPoints()
  const once = onlyonce({
    store: postgres({ pool: database.pool({ max: 4 }), pooler: POOLER }),
    secret: OLD_SECRET,
    crashPoint: points.hook,
  })
  cleanUpLater(() => once.close({ maxMs: 1_000 }))
  const key = randomUUID()
  const taker = { ...database.environment, KEY: key, OPERATION }
  const leaseUntil = async () => {
    const { rows } = await pool.query('SELECT lease_until FROM onlyonce.records WHERE key = $1', [key])
    return rows[0].lease_until.getTime() as number
  }
  /** Until the lease was renewed. */
  const untilBeat = async () => {
    const before = await leaseUntil()
    await waitUntil('there was a sign of life', async () => (await leaseUntil()) > before)
  }
  return { pool, once, key, points, untilBeat, startTaker: () => startTaker(taker) }
}

type Scene = Awaited<ReturnType<typeof scene>>

/** Busy for three leases, by the clock of the database, and until others have tried often enough to take it. */
async function beBusy(tx: Queryable, heard: readonly Heard[], lapsed: () => Promise<boolean>): Promise<void> {
  let triedBefore: number | undefined
  for (;;) {
    const { rows } = await tx.query(
      'SELECT pg_sleep(0.1), extract(epoch FROM clock_timestamp() - now()) * 1000 AS ms',
    )
    const tried = heard.at(-1)?.tried ?? 0
    if (triedBefore === undefined && (await lapsed())) triedBefore = tried
    const { ms } = rows[0] as { ms: string }
    if (Number(ms) > LEASES * LEASE_MS && tried - (triedBefore ?? tried) >= TRIES_MIN) return
  }
}

/** What comes between the step that made the record durable and the one that takes so long. */
const BETWEEN: Readonly<Record<string, (scene: Scene, op: Op) => Promise<unknown>>> = {
  'right after another step': async () => {},
  'after a sign of life, with the next one due in the middle': ({ untilBeat }) => untilBeat(),
  'after a call that had to renew the lease': async ({ untilBeat, points }, op) => {
    await untilBeat()
    await op.call('called', { call: async ({ key }) => key })
    expect(points.points()).toContainEqual({ point: 'operation.extend.after', count: 1 })
  },
}

interface Told {
  readonly here: Scene
  readonly entered: number
  readonly heard: readonly Heard[]
}

/** Runs an operation whose second step is slow, while another process wants its record from then on. */
async function runSlow(
  here: Scene,
  between: (typeof BETWEEN)[string],
  beSlow: (tx: Queryable, start: () => Promise<readonly Heard[]>) => Promise<void>,
): Promise<Told> {
  let entered = 0
  let taker: Awaited<ReturnType<typeof startTaker>>
  const slow = operation(OPERATION, async (op, _: Payment) => {
    await op.transaction('created', (tx) => note(tx, `${op.key} created`))
    await between(here, op)
    return op.transaction('slow', async (tx) => {
      entered += 1
      await beSlow(tx, async () => {
        taker ??= await here.startTaker()
        return taker.heard
      })
      await note(tx, `${op.key} slow`)
      return reply(201, { by: 'the owner' })
    })
  })
  const bounds = { leaseMs: LEASE_MS, inProgressMaxMs: 30_000 }
  const call = { account: ACCOUNT, key: here.key, input: PAYMENT, ...bounds }
  expect(await here.once.run(slow, call)).toMatchObject({ outcome: 'executed', value: { by: 'the owner' } })
  await taker!.ended
  return { here, entered, heard: taker!.heard }
}

/** It ran once, by its owner, and everybody else was told to wait. */
async function expectFirstTry({ here, entered, heard }: Told): Promise<void> {
  const { pool, key, points } = here
  expect(entered).toBe(1)
  // Two steps, and neither was run again.
  expect(points.points()).toContainEqual({ point: 'step.work.before', count: 2 })
  expect(new Set(heard.slice(0, -1).map(({ outcome }) => outcome))).toEqual(new Set(['in_progress']))
  expect(heard.filter(({ done }) => done > 0)).toEqual([])
  expect(await lookAt(pool, key)).toMatchObject({ state: 'completed', fence: 1 })
  expect(await countNotes(pool, `${key} slow`)).toBe(1)
  expect(await countNotes(pool, `${key} taken`)).toBe(0)
  console.log(
    `${heard.at(-1)!.tried} tries to take it over, ${heard.length - 1} retries were told in_progress`,
  )
}

describe('a serializable step that takes three leases, while others want its record all the time', () => {
  it.each(Object.entries(BETWEEN))('succeeds at its first try, %s', async (_, between) => {
    const here = await scene()
    const isLapsed = async () => (await lookAt(here.pool, here.key))!.lapsed
    const told = await runSlow(here, between, async (tx, start) => {
      await tx.query('SELECT 1')
      await beBusy(tx, await start(), isLapsed)
    })
    await expectFirstTry(told)
    expect(told.heard.at(-1)!.tried).toBeGreaterThanOrEqual(TRIES_MIN)
  })

  it('also where it is long before it asks the database for anything', async () => {
    const here = await scene()
    const think = async (_: Queryable, start: () => Promise<readonly Heard[]>) => {
      const heard = await start()
      await here.pool.query('SELECT pg_sleep($1)', [(LEASES * LEASE_MS) / 1_000])
      await waitUntil('others were told to wait', () => heard.length >= TRIES_MIN)
    }
    const told = await runSlow(here, async () => {}, think)
    await expectFirstTry(told)
  })
})
