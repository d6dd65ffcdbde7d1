import type { Mutant } from './mutants.ts'

const SQL = 'src/limits/sql.ts'

/** Faults in limits: what passes that must not, and what is refused for too long. */
export const LIMIT_MUTANTS: readonly Mutant[] = [
  {
    name: 'take the points of a refused try',
    file: SQL,
    edits: [{ from: `ELSE w.points + \${MORE} END`, to: `ELSE w.points + $2::int * $3::int END` }],
    tests: ['test/limits/rate-limit.test.ts'],
  },
  {
    name: 'give points back to a window that they were not taken of',
    file: SQL,
    edits: [{ from: `WHERE key = $1 AND expire = $3::bigint`, to: `WHERE key = $1 AND $3::bigint > 0` }],
    tests: ['test/limits/velocity-limit.test.ts'],
  },
  {
    name: 'keep what shorter windows gave where a longer one refuses',
    file: 'src/limits/velocity-limit.ts',
    edits: [
      { from: `        await this.giveBack()\n        return verdictOf`, to: `        return verdictOf` },
    ],
    tests: ['test/limits/velocity-limit.test.ts'],
  },
  {
    name: 'take a collision for a store that is away',
    file: 'src/limits/windows.ts',
    edits: [{ from: `classify(error) !== 'collision'`, to: `classify(error) !== 'connection'` }],
    tests: ['test/limits/rate-limit.test.ts'],
    only: 'takes again what collided',
  },
  {
    name: 'let everybody of a group pass where some of it fits',
    file: 'src/limits/takes.ts',
    edits: [{ from: `const fits = index < granted`, to: `const fits = granted > 0` }],
    tests: ['test/limits/rate-limit.test.ts'],
  },
  {
    name: 'pause all subjects after trouble with one',
    file: 'src/limits/guard.ts',
    edits: [{ from: `const pause = this.#pauses.get(subject)`, to: `const [pause] = this.#pauses.values()` }],
    tests: ['test/limits/trouble.test.ts'],
  },
  {
    name: 'charge a card that cannot be counted',
    file: 'apps/payments/admission.ts',
    edits: [{ from: `on_error: 'refuse'`, to: `on_error: 'allow'` }],
    tests: ['apps/payments/test/hostile-limits.test.ts'],
    only: 'a card',
  },
  {
    name: 'look up all made-up keys at once',
    file: 'apps/payments/accounts/authenticate.ts',
    edits: [{ from: `if (recognised.has(key)) {`, to: `if (recognised !== null) {` }],
    tests: ['apps/payments/test/hostile-limits.test.ts'],
    only: 'one query at a time',
  },
  {
    name: 'judge a queue for connections before it has lasted',
    file: 'src/limits/queue-wait.ts',
    edits: [{ from: `waiting === 0 || watched_ms < LIMITS.overload_queue_watch_ms`, to: `waiting === 0` }],
    tests: ['src/limits/queue-wait.test.ts'],
  },
  {
    name: 'take an idle pool for a slow one',
    file: 'src/limits/queue-wait.ts',
    edits: [{ from: `if (this.#queue.waiting === 0) this.#stretches.length = 0\n    else `, to: `` }],
    tests: ['src/limits/queue-wait.test.ts'],
  },
  {
    name: 'let those who wait for their turn in a store not count as a queue',
    file: 'src/store/postgres/connections.ts',
    edits: [{ from: `waitInFront(pool, () => this.slots.waiting)`, to: `waitInFront(pool, () => 0)` }],
    tests: ['test/limits/overload.test.ts'],
  },
  {
    name: 'shed nothing for a queue of connections',
    file: 'src/limits/overload.ts',
    edits: [{ from: ` || queueMs() > queue_max_ms * part`, to: `` }],
    tests: ['test/limits/overload.test.ts'],
  },
  {
    name: 'let one account have all connections that read',
    file: 'apps/payments/database/reads.ts',
    edits: [{ from: `Math.floor(pool.options.max / 2)`, to: `pool.options.max` }],
    tests: ['apps/payments/test/hostile-storage.test.ts'],
    only: 'half of its connections',
  },
  {
    name: 'let reads take as long as they like',
    file: 'apps/payments/database/pools.ts',
    edits: [{ from: `      statement_timeout: SERVICE_LIMITS.read_max_ms,\n`, to: `` }],
    tests: ['apps/payments/test/hostile-storage.test.ts'],
    only: 'ended by the server',
  },
  {
    name: 'look for card numbers behind the claim of the key',
    file: 'apps/payments/api/index.ts',
    edits: [{ from: `    refuseCardNumbers(request.body)\n`, to: `` }],
    tests: ['apps/payments/test/hostile-cards.test.ts'],
  },
  {
    name: 'take an empty variable for none',
    file: 'apps/payments/environment.ts',
    edits: [{ from: `if (text === undefined) return null`, to: `if (!text) return null` }],
    tests: ['apps/payments/test/config.test.ts'],
  },
  {
    name: 'count a payment that is refused as a duplicate against its card',
    file: 'apps/payments/payments/create.ts',
    edits: [{ from: `refused ? doors.cameToNothing(op) : undefined`, to: `undefined` }],
    tests: ['apps/payments/test/limits.test.ts'],
    only: 'for a duplicate that is refused',
  },
  {
    name: 'count a payment against its card that its account may not make',
    file: 'apps/payments/admission.ts',
    edits: [{ from: `      if (!account.allowed) await cards.giveBack(card)\n`, to: `` }],
    tests: ['apps/payments/test/limits.test.ts'],
    only: 'where the account is charged too often',
  },
  {
    name: 'give the points of one take back twice',
    file: 'src/limits/velocity-limit.ts',
    edits: [{ from: `this.#taken.splice(0).map(`, to: `this.#taken.map(` }],
    tests: ['test/limits/velocity-limit.test.ts'],
    only: 'came to nothing',
  },
  {
    name: 'count replays against the rate of their account',
    file: 'apps/payments/api/index.ts',
    edits: [{ from: `request.uncounted = mayBeReplay(request)`, to: `request.uncounted = false` }],
    tests: ['apps/payments/test/limits.test.ts'],
    only: 'is no matter of replays',
  },
  {
    name: 'let payments begin faster than the rate of their account',
    file: 'apps/payments/admission.ts',
    edits: [{ from: `      await admitRate(asked)\n      await check()\n`, to: `      await check()\n` }],
    tests: ['apps/payments/test/limits.test.ts'],
    only: 'refuses a payment before its key is claimed',
  },
  {
    name: 'let wrong writes be as many as their account likes',
    file: 'apps/payments/api/index.ts',
    edits: [{ from: `  if (!request.uncounted) return error\n`, to: `  if (true) return error\n` }],
    tests: ['apps/payments/test/limits.test.ts'],
    only: 'wrong in their form',
  },
]
