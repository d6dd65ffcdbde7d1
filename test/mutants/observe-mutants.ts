import type { Mutant } from './mutants.ts'

/** Faults in what is told of calls, and to whom. */
export const OBSERVE_MUTANTS: readonly Mutant[] = [
  {
    name: 'observe: cut transactions off without a word',
    file: 'src/protect/running.ts',
    edits: [{ from: `this.#transactions += 1 - counted`, to: `` }],
    tests: ['test/contract/close.test.ts'],
  },
  {
    name: 'observe: cut work off without a warning where nothing observes',
    file: 'src/observe/observers.ts',
    edits: [
      {
        from: `    if (!this.none) return\n    process.emitWarning(\n      \`close()`,
        to: `    if (this.none) return\n    process.emitWarning(\n      \`close()`,
      },
    ],
    tests: ['test/contract/close.test.ts'],
    only: 'where nothing observes',
  },
  {
    name: 'observe: tell each failure of a store that is away',
    file: 'src/observe/store-health.ts',
    edits: [
      {
        from: `if (nowMs < this.#quietUntilMs && !this.#isUntold(nowMs - this.#awaySinceMs)) return`,
        to: ``,
      },
    ],
    tests: ['test/contract/store-away.test.ts'],
  },
  {
    name: 'observe: tell an outage late that follows another one',
    file: 'src/observe/store-health.ts',
    edits: [{ from: `this.#fresh || awayMs`, to: `awayMs` }],
    tests: ['src/observe/store-health.test.ts'],
  },
  {
    name: 'observe: tell an outage late that begins while the store was not well yet',
    file: 'src/observe/store-health.ts',
    edits: [{ from: `this.#fresh || awayMs >= LIMITS.storeAwaySureMs`, to: `this.#fresh` }],
    tests: ['src/observe/store-health.test.ts'],
  },
  {
    name: 'observe: take a store that fails now and then for one outage after the other',
    file: 'src/observe/store-health.ts',
    edits: [{ from: `>= LIMITS.storeSteadyMs`, to: `>= 0` }],
    tests: ['src/observe/store-health.test.ts'],
  },
  {
    name: 'observe: take a server that lets no connection in for a pool that is too small',
    file: 'src/store/postgres/connections.ts',
    edits: [
      {
        from: `opens ? unavailable(noAnswer()) : new OnlyonceError('pool_exhausted')`,
        to: `new OnlyonceError('pool_exhausted', opens ? { cause: noAnswer() } : {})`,
      },
    ],
    tests: ['test/contract/store-away.test.ts'],
  },
  {
    name: 'observe: take a pool that waited in vain for a database that is away',
    file: 'src/store/postgres/connections.ts',
    edits: [{ from: `            waitedInVain(error) ? new`, to: `            error === null ? new` }],
    tests: ['test/contract/store-away.test.ts'],
    only: 'of the pool itself',
  },
  {
    name: 'observe: do not tell that the store is back',
    file: 'src/observe/store-health.ts',
    edits: [{ from: `if (told) this.#observers.emit(`, to: `if (told) void (` }],
    tests: ['test/contract/store-away.test.ts'],
  },
  {
    name: 'observe: take a silent database for one that has hung up',
    file: 'src/store/postgres/in-time.ts',
    edits: [{ from: `throw late && !told ? noAnswer() : error`, to: `throw error` }],
    tests: ['test/contract/store-away.test.ts'],
  },
  {
    name: 'tell a worker what a client is to send again',
    file: 'src/workers/take.ts',
    edits: [{ from: `worker.runOnce().catch(throwWithoutRequest)`, to: `worker.runOnce()` }],
    tests: ['test/contract/operator-words.test.ts'],
  },
  {
    name: 'OpenTelemetry: begin the counters of an operation at its first event',
    file: 'src/observe/opentelemetry.ts',
    edits: [{ from: `      begin(signal)\n`, to: `` }],
    tests: ['test/contract/opentelemetry.test.ts'],
  },
  {
    name: 'observe: count a first attempt that ends in doubt as a retry',
    file: 'src/observe/live-call.ts',
    edits: [{ from: `return this.#run === null ? outcome : kindOf(this.#run)`, to: `return outcome` }],
    tests: ['test/operations/told.test.ts'],
  },
  {
    name: 'do not signal a reused key',
    file: 'src/observe/live-call.ts',
    edits: [
      { from: `if (met === 'key_misuse') this.#observers.emit(`, to: `if (met === 'key_misuse') void (` },
    ],
    tests: ['test/contract/observe.test.ts'],
  },
  {
    name: 'show the whole key in the log',
    file: 'src/observe/fields.ts',
    edits: [{ from: `return \`\${key.slice(0, 4)}…\${digestKey(key)}\``, to: `return key` }],
    tests: ['test/contract/observe-canary.test.ts'],
  },
  {
    name: 'let an observer harm the call that it observes',
    file: 'src/core/thrown.ts',
    edits: [{ from: `    failed(error)\n    return null`, to: `    throw error` }],
    tests: ['test/contract/observe.test.ts'],
  },
  {
    name: 'let a logger that rejects end the process',
    file: 'src/observe/log.ts',
    edits: [{ from: `      return logger[level]?.(`, to: `      logger[level]?.(` }],
    tests: ['src/observe/observers.test.ts'],
  },
  {
    name: 'leave a thenable of a callback alone',
    file: 'src/core/thrown.ts',
    edits: [{ from: `if (isThenable(value)) Promise`, to: `if (value instanceof Promise) Promise` }],
    tests: ['src/observe/observers.test.ts'],
  },
  {
    name: 'let a listener of a limit that rejects end the process',
    file: 'src/rate-limits/guard.ts',
    edits: [
      {
        from: `() => this.#options.onTrouble(error),`,
        to: `() => void this.#options.onTrouble(error),`,
      },
    ],
    tests: ['test/rate-limits/store-away.test.ts'],
  },
  {
    name: 'leave a card number in the code of an error',
    file: 'src/record/failure.ts',
    edits: [{ from: `code: storable(`, to: `code: ((text: unknown) => \`\${text}\`)(` }],
    tests: ['test/contract/observe-canary.test.ts'],
  },
  {
    name: 'take a heartbeat that overtakes the save for a lost lease',
    file: 'src/protect/handler.ts',
    edits: [{ from: `    working = false\n`, to: `` }],
    tests: ['test/contract/observe-failures.test.ts'],
  },
  {
    name: 'count stuck records that are new',
    file: 'src/store/postgres/sql/stuck.ts',
    edits: [{ from: ` AND attempted_at <= now() - \${interval('$1')}`, to: ` AND $1::float8 > 0` }],
    tests: ['test/contract/stuck.test.ts'],
  },
  {
    name: 'say of a handler that threw that it completed',
    file: 'src/onlyonce/explain-text.ts',
    edits: [{ from: `if (failure === null) return`, to: `if (failure === null || failure !== null) return` }],
    tests: ['test/contract/operator-failed.test.ts'],
  },
  {
    name: 'say that nothing happened behind a committed step',
    file: 'src/onlyonce/explain-text.ts',
    edits: [
      {
        from: `  if (facts.recoveryPoint !== null)
    return {`,
        to: `  if (facts.recoveryPoint === '')
    return {`,
      },
    ],
    tests: ['test/contract/explain-truth.test.ts'],
  },
  {
    name: 'forget how the call ended that is in doubt',
    file: 'src/operation/foreign.ts',
    edits: [{ from: `? cut(heard) : besides(known, heard)`, to: `? cut(heard) : cut(heard)` }],
    tests: ['test/contract/explain-truth.test.ts'],
  },
  {
    name: 'name operations of other accounts that have a key',
    file: 'src/store/postgres/sql/decisions.ts',
    edits: [
      {
        from: `SELECT min(operation), 1 FROM \${schema}.records WHERE account = $2`,
        to: `SELECT min(operation), 1 FROM \${schema}.records`,
      },
      {
        from: `WHERE r.account = $2 AND r.operation > names.operation`,
        to: `WHERE r.operation > names.operation`,
      },
      {
        from: `ON r.account = $2 AND r.operation = names.operation AND r.key = $10\nWHERE \${WANTED}`,
        to: `ON r.operation = names.operation AND r.key = $10\nWHERE \${WANTED.replace('r.account = $2', 'true')}`,
      },
    ],
    tests: ['test/contract/explain-truth.test.ts'],
  },
  {
    name: 'park a record in silence where nobody observes',
    file: 'src/observe/observers.ts',
    edits: [{ from: `if (!/^10*$/.test(`, to: `if (count > 0 || !/^10*$/.test(` }],
    tests: ['test/contract/explain-truth.test.ts'],
  },
  {
    name: 'take what recover has settled for a decision of an operator',
    file: 'src/onlyonce/explain.ts',
    edits: [{ from: `(byOperator ? 'operator' : 'recover')`, to: `'operator'` }],
    tests: ['test/contract/explain-truth.test.ts'],
  },
  {
    name: 'tell the clients of an API what its developer has to change',
    file: 'src/http/problem.ts',
    edits: [{ from: ` && entry.developer === undefined`, to: ` && code !== 'store_misconfigured'` }],
    tests: ['test/contract/mistakes.test.ts'],
  },
  {
    name: 'tell no developer of a mistake that a route has met',
    file: 'src/http/mistakes.ts',
    edits: [{ from: `if (!isMistake(error.code)) return`, to: `if (isMistake(error.code)) return` }],
    tests: ['test/contract/mistakes.test.ts'],
  },
  {
    name: 'suggest a new key where a request may have taken effect',
    file: 'src/core/error-table.ts',
    edits: [
      {
        from: `Contact support to find out what became of it; do not use a new key.`,
        to: `Use a new key for a new request.`,
      },
    ],
    tests: ['test/error-meanings.test.ts'],
  },
]
