import { LIMITS } from '../core/limits.ts'
import { backoffMs } from '../core/retry.ts'
import type { Observers } from '../observe/index.ts'
import { monotonicMs } from '../observe/stopwatch.ts'
import type { Ran } from '../onlyonce/worker.ts'
import { failureOf } from '../record/failure.ts'
import type { CrashPoint } from '../store/contract.ts'
import type { JobEnd, OutboxStore, TakenJob } from '../store/outbox.ts'
import type { RelaySettings, RunJob } from './options.ts'

const IDLE: Ran = { done: 0, more: false }

/** Runs jobs: several at once, each in bounded time, and writes their ends together. */
export class JobRunner {
  readonly #jobs: ReadonlyMap<string, RunJob>
  readonly #store: OutboxStore
  readonly #settings: RelaySettings
  readonly #observers: Observers
  readonly #crashPoint: CrashPoint
  #running = 0
  /** Ends that are not written yet, by claim; and the write that is under way. */
  #ended = new Map<string, JobEnd[]>()
  #writing: Promise<void> | null = null

  constructor(
    jobs: ReadonlyMap<string, RunJob>,
    store: OutboxStore,
    settings: RelaySettings,
    observers: Observers,
    crashPoint: CrashPoint,
  ) {
    this.#jobs = jobs
    this.#store = store
    this.#settings = settings
    this.#observers = observers
    this.#crashPoint = crashPoint
  }

  /** Takes as many as there is room for, and resolves when these have ended. */
  async round(): Promise<Ran> {
    const { jobsAtOnce, jobTimeoutMs } = this.#settings
    const room = jobsAtOnce - this.#running
    if (room <= 0 || this.#jobs.size === 0) return IDLE
    // Taken before they are: another round may begin meanwhile.
    this.#running += room
    let jobs: readonly TakenJob[] = []
    try {
      this.#crashPoint('jobs.take.before')
      const taken = await this.#store.takeJobs(
        [...this.#jobs.keys()],
        room,
        jobTimeoutMs + LIMITS.jobLeaseMarginMs,
      )
      this.#crashPoint('jobs.take.after')
      jobs = taken.jobs
      this.#running -= room - jobs.length
      await Promise.all(jobs.map((job) => this.#runOne(taken.claimId, job)))
    } catch (error) {
      if (jobs.length === 0) this.#running -= room
      throw error
    }
    return { done: jobs.length, more: jobs.length === room }
  }

  async #runOne(claimId: string, job: TakenJob): Promise<void> {
    const startMs = monotonicMs()
    let end: JobEnd
    try {
      end = await this.#endOf(job)
    } finally {
      this.#running -= 1
    }
    await this.#write(claimId, end)
    this.#observers.emit({
      signal: 'job_ended',
      job: job.job,
      account: job.account,
      jobId: job.id,
      outcome: end.end,
      attempts: job.attempts,
      failure: end.end === 'done' ? null : end.failure,
      durationMs: monotonicMs() - startMs,
    })
  }

  async #endOf(job: TakenJob): Promise<JobEnd> {
    const { account, id, attempts } = job
    const { jobAttemptsMax, jobBackoffMinMs, jobBackoffMaxMs } = this.#settings
    try {
      // A job that was taken so often without a result has crashed its workers.
      if (attempts > jobAttemptsMax) throw new Error('It was begun too often, and its end was never told.')
      this.#crashPoint('jobs.work.before')
      await this.#inTime(job)
      this.#crashPoint('jobs.work.after')
      return { account, id, end: 'done', keyed: job.key !== null }
    } catch (error) {
      const failure = failureOf(error)
      if (attempts >= jobAttemptsMax) return { account, id, end: 'parked', failure }
      const backoff = { minMs: jobBackoffMinMs, maxMs: jobBackoffMaxMs }
      return { account, id, end: 'again', waitMs: backoffMs(attempts, Math.random, backoff), failure }
    }
  }

  /** A job that does not listen to its signal is not waited for: its lease ends soon, and others run it. */
  async #inTime(job: TakenJob): Promise<void> {
    const controller = new AbortController()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const error = new Error(`The job took longer than ${this.#settings.jobTimeoutMs} ms.`)
        controller.abort(error)
        reject(error)
      }, this.#settings.jobTimeoutMs)
    })
    try {
      const run = this.#jobs.get(job.job)!
      await Promise.race([run(job, { signal: controller.signal }), late])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Ends that come while others are being written go together into the next write. */
  async #write(claimId: string, end: JobEnd): Promise<void> {
    const waiting = this.#ended.get(claimId)
    if (waiting === undefined) this.#ended.set(claimId, [end])
    else waiting.push(end)
    const earlier = this.#writing
    if (earlier !== null) await earlier.catch(() => {})
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = null
    })
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    // In this turn of the event loop more jobs may end.
    await new Promise((resolve) => setImmediate(resolve))
    const ended = this.#ended
    if (ended.size === 0) return
    this.#ended = new Map()
    this.#crashPoint('jobs.done.before')
    for (const [claimId, ends] of ended) await this.#store.endJobs(claimId, ends)
    this.#crashPoint('jobs.done.after')
  }
}
