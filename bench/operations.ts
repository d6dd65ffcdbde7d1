import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { gatewayClient, startGateway } from '../test/gateway/client.ts'
import { alternate, ratioOf, type Side, spreadOf } from './measure.ts'
import { operationSide, unprotectedSide } from './operations-side.ts'
import { type OperationsSide, type OperationsWorld, TABLES } from './operations-work.ts'
import { dbosSide } from './peers/dbos-side.ts'
import type { Report } from './report.ts'
import type { Bench } from './run.ts'

const CALLERS = 64
const CONNECTIONS = 16
/** A side that lost or doubled a payment would be compared with one that did not. */
const CHECKED = 200

/** Every side there is. One more is one more line here, and its ratios below. */
const SIDES: Readonly<Record<string, (world: OperationsWorld) => Promise<OperationsSide>>> = {
  unprotected: unprotectedSide,
  operation: operationSide,
  dbos: dbosSide,
}

/** Each as a/b, with an aim where there is one; those whose sides are not there are left out. */
const RATIOS: Readonly<Record<string, number | null>> = {
  'operation/unprotected': 0.85,
  'operation/dbos': 8,
  'unprotected/dbos': null,
}

/** Write, call, write: what a payment is, with a gateway in a process of its own. */
export async function operations({ url, rounds, roundMs }: Bench): Promise<Report> {
  const observer = new pg.Pool({ connectionString: url, max: 1 })
  observer.on('error', () => {})
  await observer.query(TABLES)
  const process = await startGateway()
  const gateway = gatewayClient(process.url)
  const opened: Record<string, OperationsSide> = {}
  try {
    for (const [name, open] of Object.entries(SIDES)) {
      opened[name] = await open({ url, gateway, connections: CONNECTIONS })
    }
    const sides = Object.entries(opened).map(([name, { run }]): [string, Side] => [
      name,
      () => run(randomUUID()),
    ])
    const commits: Record<string, number> = {}
    for (const [name, side] of sides) commits[name] = await commitsPerPayment(observer, side)
    const load = { callers: CALLERS, roundMs, rounds }
    const rates = await alternate(Object.fromEntries(sides), load)
    return reportOf(rates, commits, { rounds, roundMs })
  } finally {
    for (const { close } of Object.values(opened)) await close()
    gateway.close()
    await process.stop()
    await observer.end()
  }
}

function reportOf(
  rates: Record<string, number[]>,
  commitsPerRequest: Record<string, number>,
  { rounds, roundMs }: Pick<Bench, 'rounds' | 'roundMs'>,
): Report {
  const known = Object.entries(RATIOS).filter(([name]) => name.split('/').every((side) => side in rates))
  const aims = known.filter((entry): entry is [string, number] => entry[1] !== null)
  const spreadOfRatio = (name: string) => {
    const [a, b] = name.split('/') as [string, string]
    return ratioOf(rates, a, b)
  }
  return {
    suite: 'operations',
    rates: Object.fromEntries(Object.entries(rates).map(([name, values]) => [name, spreadOf(values)])),
    ratios: Object.fromEntries(known.map(([name]) => [name, spreadOfRatio(name)])),
    aims: Object.fromEntries(aims),
    commitsPerRequest,
    notes: [
      `${CALLERS} callers, ${CONNECTIONS} connections, ${rounds} rounds of ${roundMs} ms a side, a gateway on the same machine.`,
      'unprotected: BEGIN, INSERT, COMMIT; the call; BEGIN, UPDATE, INSERT, COMMIT. operation: the same, protected. dbos: the same as a workflow of DBOS Transact.',
    ],
  }
}

/** Every payment is settled and in the ledger once; how many transaction ids were used says how many commits wrote. */
async function commitsPerPayment(observer: pg.Pool, side: Side): Promise<number> {
  const read = async () => {
    const { rows } = await observer.query(`
      SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS id, count(*)::int AS settled,
        (SELECT count(*)::int FROM ledger) AS posted
      FROM payments WHERE status = 'succeeded'`)
    return rows[0] as { id: string; settled: number; posted: number }
  }
  const before = await read()
  let left = CHECKED
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      while (left-- > 0) await side()
    }),
  )
  const after = await read()
  const done = { settled: after.settled - before.settled, posted: after.posted - before.posted }
  if (done.settled !== CHECKED || done.posted !== CHECKED) {
    throw new Error(`${CHECKED} payments left ${JSON.stringify(done)}.`)
  }
  return Number(BigInt(after.id) - BigInt(before.id)) / CHECKED
}
