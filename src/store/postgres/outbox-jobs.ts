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
  count_max: number,
  lease_ms: number,
): Promise<TakenJobs> {
  const claim_id = randomUUID()
  const { rows } = await connections.run(
    ...SOON,
    bind(takeJobs, arrayLiteral(names), `${count_max}`, claim_id, `${lease_ms}`),
  )
  return { claim_id, jobs: rows[2]!.map(readJob) }
}

function readJob([account, id, job, key, payload, attempts, staged_at]: Row): TakenJob {
  return {
    account: account!,
    id: withPrefix('job', id!),
    job: job!,
    key: key ?? null,
    payload: JSON.parse(payload!),
    attempts: Number(attempts),
    staged_at: Number(staged_at),
  }
}

export async function endJobs(
  connections: Connections,
  { deleteDone, keepDone, failJobs }: OutboxStatements,
  claim_id: string,
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
    ...(done.length > 0 ? [bind(deleteDone, claim_id, ...idsOf(done))] : []),
    ...(kept.length > 0 ? [bind(keepDone, claim_id, ...idsOf(kept))] : []),
    ...(failed.length > 0
      ? [
          bind(
            failJobs,
            claim_id,
            ...idsOf(failed),
            arrayLiteral(failed.map((end) => (end.end === 'again' ? `${end.wait_ms}` : null))),
            arrayLiteral(failed.map(({ failure }) => failure.code)),
            arrayLiteral(failed.map(({ failure }) => failure.message)),
          ),
        ]
      : []),
  )
}
