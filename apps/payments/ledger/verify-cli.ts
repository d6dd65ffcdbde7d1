/**
 * `npm run ledger:verify [-- --json]`: 0 if all is right, 1 if something is wrong, 2 if nobody could look.
 * The database is that of DATABASE_URL, or the one in ./data.
 */
import { existsSync } from 'node:fs'
import { startEmbeddedPostgres } from 'onlyonce/embedded'
import pg from 'pg'
import { Reader } from '../environment.ts'
import { formatMoney } from '../money/index.ts'
import { type Verification, verify } from './verify.ts'

const FOLDER = './data'

async function open(): Promise<{ pool: pg.Pool; close: () => Promise<void> }> {
  const read = new Reader(process.env)
  const givenUrl = read.url('DATABASE_URL', ['postgres:', 'postgresql:'])
  if (givenUrl === null && read.text('NODE_ENV') === 'production') {
    read.wrong('DATABASE_URL', 'is needed, because NODE_ENV is production.')
  }
  read.finish()
  if (givenUrl === null && !existsSync(FOLDER)) {
    throw new Error(`Set DATABASE_URL: there is no database in ${FOLDER} either.`)
  }
  const server = givenUrl !== null ? null : await startEmbeddedPostgres({ folder: FOLDER })
  const pool = new pg.Pool({ connectionString: server?.url ?? givenUrl!, max: 1 })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return {
    pool,
    async close() {
      await pool.end()
      await server?.stop()
    },
  }
}

function tell({
  ok,
  transactions,
  entries,
  problems,
  in_flight: inFlight,
  cut_short: cutShort,
}: Verification): string {
  return [
    ...problems.map(({ check, account, id, what }) =>
      [check, account, id, what].filter((part) => part !== null).join('  '),
    ),
    ...inFlight.map(
      ({ account, source, currency, amount, since }) =>
        `in flight  ${account}  ${source}  ${formatMoney({ amount: BigInt(amount), currency })} since ${since.toISOString()}`,
    ),
    ...cutShort.map((name) => `${name}: there are more`),
    `${transactions} transactions, ${entries} entries: ${ok ? 'the ledger is right' : 'THE LEDGER IS WRONG'}`,
  ].join('\n')
}

async function main(args: readonly string[]): Promise<number> {
  const unknown = args.find((arg) => arg !== '--json')
  if (unknown !== undefined) throw new Error(`${unknown} is not an option. There is --json.`)
  const { pool, close } = await open()
  try {
    const verification = await verify(pool)
    console.log(args.includes('--json') ? JSON.stringify(verification, null, 2) : tell(verification))
    return verification.ok ? 0 : 1
  } finally {
    await close()
  }
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code
  },
  (error: unknown) => {
    console.error(`The ledger could not be verified: ${error instanceof Error ? error.message : error}`)
    process.exitCode = 2
  },
)
