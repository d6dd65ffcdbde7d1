import type pg from 'pg'
import type { Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { type OpenOptions, openShop, type Shop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { Client, type Received, type Sent } from './client.ts'
import type { AdapterUnderTest, Feature, Result, Route, RouteInput } from './under-test.ts'

/** One promise, shown once for every adapter. */
export interface Case {
  readonly name: string
  readonly needs: readonly Feature[]
  run(bench: Bench): Promise<void>
}

export interface Topic {
  readonly name: string
  readonly cases: readonly Case[]
}

/** Collects the cases of a topic in the way that tests are written: `one(name, run)`. */
export function topic(name: string, describe: (one: One) => void): Topic {
  const cases: Case[] = []
  const one: One = (title, run, needs = []) => cases.push({ name: title, run, needs })
  describe(one)
  return { name, cases }
}

type One = (name: string, run: Case['run'], needs?: readonly Feature[]) => void

/** What of a route a case cares about; the rest is usual. */
export interface GivenRoute extends Partial<Omit<Route, 'handle'>> {
  readonly handle?: (input: RouteInput, runs: number) => Result | Promise<Result>
}

/** A server of the adapter with a client, and the number of times that its handlers ran. */
export interface Served {
  readonly once: Onlyonce<PostgresTx>
  readonly client: Client
  readonly port: number
  /** How often a handler was entered. */
  readonly runs: number
  send(sent?: Sent): Promise<Received>
  /** The same request twice: the reply of the first, and what a retry gets. */
  twice(sent?: Sent): Promise<{ first: Received; again: Received }>
}

/** What a case works with: an adapter and a database. */
export class Bench {
  readonly adapter: AdapterUnderTest
  readonly shop: Shop
  /** One for all servers: a hundred cases with connections of their own are more than a database takes. */
  readonly #pool: pg.Pool

  constructor(adapter: AdapterUnderTest, shop: Shop) {
    this.adapter = adapter
    this.shop = shop
    this.#pool = shop.database.pool({ max: 10 })
  }

  static async open(adapter: AdapterUnderTest): Promise<Bench> {
    return new Bench(adapter, await openShop())
  }

  /** Serves routes. One that says nothing of it is POST /things on the application itself, and answers 201. */
  async serve(given: GivenRoute | readonly GivenRoute[] = {}, options: OpenOptions = {}): Promise<Served> {
    const once = this.shop.open({ pool: this.#pool, ...options })
    let runs = 0
    const routes = (Array.isArray(given) ? given : [given]).map(
      ({ handle = created, ...rest }: GivenRoute): Route => ({
        method: 'POST',
        path: '/things',
        prefix: '',
        order: 'layer_first',
        policy: {},
        ...rest,
        handle(input) {
          runs += 1
          return handle(input, runs)
        },
      }),
    )
    const server = await this.adapter.serve(once, routes)
    cleanUpLater(() => server.close())
    const client = new Client(server.port)
    return {
      once,
      client,
      port: server.port,
      get runs() {
        return runs
      },
      send: (sent) => client.send(sent),
      async twice(sent = {}) {
        const same = { key: crypto.randomUUID(), ...sent }
        const first = await client.send(same)
        return { first, again: await client.send(same) }
      },
    }
  }
}

/** Another reply at each run, so that a second run cannot pass for a replay. */
function created(_: RouteInput, runs: number): Result {
  return { do: 'json', status: 201, value: { run: runs, at: performance.now() } }
}
