import { randomUUID } from 'node:crypto'
import { withoutPrefix, withPrefix } from '../event-id.ts'
import type { JobEnd, TakenJob, TakenJobs } from '../outbox.ts'
import type { Connections } from './connections.ts'
import { bind, type Row } from './flush.ts'
import { BY_INDEX, type OutboxStatements, SOON } from './outbox-statements.ts'
import { arrayLiteral } from './rows.ts'

export async function takeJobs(
  connections: Connections,
  { takeJobs }: OutboxStatements,
  names: readonly string[],
  countMax: number,
  leaseMs: number,
): Promise<TakenJobs> {
  const claimId = randomUUID()
  const { rows } = await connections.run(
    ...SOON,
    bind(takeJobs, arrayLiteral(names), `${countMax}`, claimId, `${leaseMs}`),
  )
  return { claimId, jobs: rows[2]!.map(readJob) }
}

function readJob([account, id, job, key, payload, attempts, stagedAt]: Row): TakenJob {
  return {
    account: account!,
    id: withPrefix('job', id!),
    job: job!,
    key: key ?? null,
    payload: JSON.parse(payload!),
    attempts: Number(attempts),
    stagedAt: Number(stagedAt),
  }
}

export async function endJobs(
  connections: Connections,
  { deleteDone, keepDone, failJobs }: OutboxStatements,
  claimId: string,
  ends: readonly JobEnd[],
): Promise<void> {
  const done = ends.filter((end) => end.end === 'done' && !end.keyed)
  const kept = ends.filter((end) => end.end === 'done' && end.keyed)
  const failed = ends.filter((end) => end.end !== 'done')
  const idsOf = (list: readonly JobEnd[]) =>
    [
      arrayLiteral(list.map(({ account }) => account)),
      arrayLiteral(list.map(({ id }) => withoutPrefix(id))),
    ] as const
  await connections.run(
    BY_INDEX,
    ...(done.length > 0 ? [bind(deleteDone, claimId, ...idsOf(done))] : []),
    ...(kept.length > 0 ? [bind(keepDone, claimId, ...idsOf(kept))] : []),
    ...(failed.length > 0
      ? [
          bind(
            failJobs,
            claimId,
            ...idsOf(failed),
            arrayLiteral(failed.map((end) => (end.end === 'again' ? `${end.waitMs}` : null))),
            arrayLiteral(failed.map(({ failure }) => failure.code)),
            arrayLiteral(failed.map(({ failure }) => failure.message)),
          ),
        ]
      : []),
  )
}
