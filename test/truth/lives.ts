import { randomUUID } from 'node:crypto'
import type { Executed } from '../../src/entries/errors.ts'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import {
  callRefused,
  type ErrorCode,
  notExecuted,
  OnlyonceError,
  onlyonce,
  operation,
  reply,
  type Store,
} from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { leaveEffect, SECRET } from '../contract/shop.ts'
import { faultyStore, type Injection } from './faulty-store.ts'
import type { Given, InWork, Moment } from './moments.ts'

/** An error to strike with. */
export interface Strike {
  readonly name: string
  make(): unknown
}

/** What a client was told: by an answer of ours, by an error that a framework is given, or by a reply of the work's own. */
export interface Told {
  readonly code: string
  readonly executed: Executed | null
  readonly status: number | null
  /** The answer, where it is ours. */
  readonly text: string
}

export interface Life {
  readonly key: string
  readonly operation: string
  readonly moment: Moment
  readonly strike: string
  readonly told: Told
}

/** What was done outside of the database: the keys of the requests that did it. */
export type Journal = Map<string, number>

export const LEASE_MS = 2_000
const TRIES_MS = 3_000
const CLOSE_MS = 1_000
const OPERATIONS = { plain: payOf('plain'), atomic_first: payOf('atomic_first') }
export const ALL_OPERATIONS = Object.values(OPERATIONS)
const journals = new Map<string, Journal>()
/** How the work of a request behaves, by its key; without an entry it does what it should. */
const behaviours = new Map<string, { readonly work: InWork; readonly given: Given | null; make(): unknown }>()

/** Lets one request live through a moment at which an error strikes, and tells what its client heard. */
export async function live(
  store: Store<PostgresTx>,
  journal: Journal,
  moment: Moment,
  strike: Strike,
  times: number,
): Promise<Life> {
  const { protection, strikes, given = null } = moment
  const key = randomUUID()
  journals.set(key, journal)
  if (given === 'retryable_before' || given === 'executed_before') {
    behaviours.set(key, {
      work: 'none',
      given: given === 'retryable_before' ? 'says_not_executed' : null,
      make: strike.make,
    })
    await request(store, [], moment, key)
  }
  const work = 'work' in strikes ? strikes.work : 'none'
  behaviours.set(key, { work, given, make: strike.make })
  const injections: Injection[] = []
  if ('method' in strikes) injections.push({ ...strikes, error: strike.make(), times })
  if (given === 'lost_step') {
    const method = protection === 'operation' ? 'operations.step' : 'transact'
    injections.push({ method, when: 'lost', error: new OnlyonceError('store_unavailable'), times: 1 })
  }
  const told = await request(store, injections, moment, key)
  // What goes on in the background does what it should.
  behaviours.delete(key)
  return { key, operation: nameOf(moment), moment, strike: strike.name, told }
}

async function request(
  store: Store<PostgresTx>,
  injections: readonly Injection[],
  moment: Moment,
  key: string,
): Promise<Told> {
  const once = onlyonce({
    store: faultyStore(store, injections),
    secret: SECRET,
    reconcileAfterMs: [1, 1, 1],
    // How long a request tries. It is not the client's own, so workers begin calls after it too.
    deadlineMs: TRIES_MS,
    // Thousands of them live in this process: the test looks after what they leave.
    background: false,
  })
  await once.start()
  const POST = serve(once, moment, key)
  const sent = new Request('http://localhost/', {
    method: 'POST',
    headers: { 'idempotency-key': key, 'content-type': 'application/json' },
    body: '{"amount":5}',
  })
  try {
    return await toldBy(await POST(sent))
  } catch (error) {
    // What the framework is given: it may well show what an error of ours says.
    if (!(error instanceof OnlyonceError)) return { code: 'thrown', executed: null, status: null, text: '' }
    return { code: error.code, executed: error.executed, status: null, text: error.message }
  } finally {
    await once.close({ maxMs: CLOSE_MS })
  }
}

async function toldBy(response: Response): Promise<Told> {
  const ours = response.headers.get('content-type') === 'application/problem+json'
  const { status } = response
  const text = await response.text()
  if (!ours) return { code: `http_${status}`, executed: null, status, text: '' }
  const { code, executed } = JSON.parse(text) as { code: ErrorCode; executed: Executed }
  return { code, executed, status, text }
}

function serve(once: ReturnType<typeof onlyonce<PostgresTx>>, moment: Moment, key: string) {
  const account = () => 'acct_truth'
  switch (moment.protection) {
    case 'operation': {
      const pay = moment.given === 'atomic_first' ? OPERATIONS.atomic_first : OPERATIONS.plain
      return idempotent(once, { account, operation: pay, leaseMs: LEASE_MS })
    }
    case 'transaction':
      return idempotent(
        once,
        { account, operation: nameOf(moment), protect: 'transaction' },
        async (_, { idempotency: context }) => {
          await behave(key, 'first')
          await leaveEffect(context!.tx, key)
          await behave(key, 'last')
          return Response.json({ id: key }, { status: 201 })
        },
      )
    case 'handler':
      return idempotent(
        once,
        { account, operation: nameOf(moment), leaseMs: LEASE_MS, deadlineMs: 1_000 },
        async () => {
          await behave(key, 'first')
          note(key)
          await behave(key, 'last')
          return Response.json({ id: key }, { status: 201 })
        },
      )
    default:
      return moment.protection satisfies never
  }
}

function nameOf({ protection, given }: Moment): string {
  if (protection !== 'operation') return `truth.${protection}`
  return OPERATIONS[given === 'atomic_first' ? 'atomic_first' : 'plain'].name
}

async function behave(key: string, place: 'first' | 'last'): Promise<void> {
  const behaviour = behaviours.get(key)
  if (behaviour === undefined) return
  const { work, given, make } = behaviour
  if (work === `throws_${place}`) throw make()
  if (given === 'says_not_executed' && place === 'first') throw notExecuted()
}

/** Calls, and transactions before or behind them. What is done outside is noted under the key of the request. */
function payOf(kind: 'plain' | 'atomic_first') {
  return operation(`truth.${kind}`, async (op, _: unknown) => {
    const { key } = op
    if (kind === 'atomic_first') {
      await op.transaction('created', (tx) => leaveEffect(tx, key))
      await op.transaction('reserved', (tx) => leaveEffect(tx, key))
    }
    if (behaviours.get(key)?.given !== 'says_not_executed') await behave(key, 'first')
    const charge = await op.call('charged', {
      idempotent: behaviours.get(key)?.given !== 'call_in_doubt',
      call: async () => await call(key),
    })
    await op.call('captured', { call: async () => charge })
    await behave(key, 'last')
    return await op.transaction('settled', async (tx) => {
      await leaveEffect(tx, key)
      return reply(201, { charge })
    })
  })
}

async function call(key: string): Promise<string> {
  const behaviour = behaviours.get(key)
  if (behaviour?.given === 'says_not_executed') throw notExecuted()
  if (behaviour?.given === 'call_refused') throw callRefused()
  if (behaviour?.work === 'call_throws_first') throw behaviour.make()
  note(key)
  if (behaviour?.work === 'call_throws_last') throw behaviour.make()
  if (behaviour?.given === 'call_in_doubt') throw new Error('socket hang up')
  return 'ch_1'
}

function note(key: string): void {
  const journal = journals.get(key)!
  journal.set(key, (journal.get(key) ?? 0) + 1)
}
