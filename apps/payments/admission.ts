/** Who may go on: how fast an account may be, how often a card may be tried, and how much this process takes on at once. */
import type { FastifyReply } from 'fastify'
import type { Admission, Asked, Secret } from 'onlyonce'
import {
  admissionOf,
  type LimiterOptions,
  limitHeaders,
  overload,
  rateLimit,
  velocityLimit,
} from 'onlyonce/limits'
import type { Caller } from './accounts/index.ts'
import type { LimitsConfig } from './config.ts'
import { tooMany } from './database/reads.ts'
import type { Mode } from './gateway/index.ts'
import { LIMITS } from './limits.ts'
import { Refused } from './problems.ts'
import { type Attempt, Tries } from './tries.ts'

const DAY_MS = 86_400_000

export interface ServiceLimits {
  /** Makes the tables where they are missing. The first request would, but is not counted where that takes too long. */
  start(): Promise<void>
  /** For requests under /v1 that have no record which could answer them: so many in a second. Throws; nothing is claimed by then. */
  limitRate(caller: Caller, reply: FastifyReply): Promise<void>
  /** For every request under /v1, before anything is asked of the database: throws while nobody gets a connection in time. */
  refuseWhenStalled(): void
  /** Throws where too many requests of the account are under way; else counts this one until what it returns is called, once. */
  limitAtOnce(caller: Caller): () => void
  /**
   * For work that would begin: so much in a second, and in a day. Replays are not asked about. `check` is called where the rate allows it,
   * and may throw: then the request does not count for the day.
   */
  readonly admitWork: (asked: Named, check?: () => Promise<void>) => Promise<Admission>
  /** The same for a payment, and how often its card and its account were charged. */
  readonly admitPayment: (asked: Asked, check: () => Promise<void>) => Promise<Admission>
  /** What was admitted began nothing, and asked no processor: then it does not count for the day, nor for its card and its account. */
  readonly cameToNothing: (asked: Named) => Promise<void>
  /** An attempt of a write begins: it counts once for its day, and against its card where the card is tried. */
  readonly begin: (asked: Named) => Attempt
  /** Counts one more request under way in this process, until what it returns is called. */
  countRequest(): () => void
  stop(): void
}

/** A key is one of its operation: the same text may name a payment and an endpoint. */
type Named = Pick<Asked, 'account' | 'operation' | 'key'>

interface LimitsOptions extends Pick<LimiterOptions, 'pool' | 'pooler' | 'on_trouble'> {
  /** The one that requests wait for; `pool` is that of the limits alone. */
  readonly work_pool: LimiterOptions['pool']
  readonly config: LimitsConfig
  readonly secret: Secret
}

export function openLimits({ config, secret, work_pool, ...own }: LimitsOptions): ServiceLimits {
  // A rate that cannot be counted is counted by each process: it protects us, and a database that is away answers nothing anyway.
  const shared = { ...own, wait_max_ms: config.wait_max_ms, on_error: 'allow' } as const
  // A card that cannot be counted is not charged: whoever could keep it from being counted would have no limit.
  const strict = { ...own, wait_max_ms: config.velocity_wait_max_ms, on_error: 'refuse' } as const
  const rates = {
    live: rateLimit({ ...shared, name: 'live', points: config.rate_live, per_ms: 1_000 }),
    test: rateLimit({ ...shared, name: 'test', points: config.rate_test, per_ms: 1_000 }),
  } satisfies Record<Mode, unknown>
  const bytes =
    typeof secret === 'string' || secret instanceof Uint8Array ? secret : secret.keys[secret.current]!
  const cards = velocityLimit({ ...strict, name: 'card', secret: bytes, rules: config.velocity_card })
  const accounts = velocityLimit({
    ...strict,
    name: 'account',
    secret: bytes,
    rules: config.velocity_account,
  })
  const { in_flight_max, lag_max_ms, queue_max_ms } = config
  const load = overload({ in_flight_max, lag_max_ms, queue_max_ms, pool: work_pool })
  // Not worth a flush to the disk each: after a crash of the database the day begins anew.
  const quotas = {
    live: rateLimit({ ...shared, name: 'quota_live', points: config.quota_live, per_ms: DAY_MS }),
    test: rateLimit({ ...shared, name: 'quota_test', points: config.quota_test, per_ms: DAY_MS }),
  } satisfies Record<Mode, unknown>
  const at_once = new Map<string, number>()
  const tries = new Tries()
  const admitRate = async ({ account }: Pick<Asked, 'account'>) => {
    const rate = await rates[modeOf(account)].take(account)
    orRefuse(admissionOf(rate, { code: 'rate_limited', reason: 'account-rate' }))
  }
  /** The day comes last: what is refused before it does not count. */
  const admitLoad = async (asked: Named, check: () => Promise<void>) => {
    await admitRate(asked)
    orRefuse(load.admit())
    await check()
    const limit = quotas[modeOf(asked.account)]
    const quota = await limit.take(asked.account)
    const admission = orRefuse(admissionOf(quota, { code: 'quota_exceeded', reason: 'daily-quota' }))
    return { admission, giveBack: () => limit.giveBack(quota) }
  }
  return {
    async start() {
      const all = [rates.live, rates.test, quotas.live, quotas.test, cards, accounts]
      await Promise.all(all.map((limiter) => limiter.start()))
    },
    async limitRate({ account, mode }, reply) {
      const verdict = await rates[mode].take(account)
      reply.headers(limitHeaders(verdict, { reason: 'account-rate' }))
      if (!verdict.allowed) throw new Refused('rate_limited')
    },
    refuseWhenStalled() {
      if (load.queue_ms > queue_max_ms * LIMITS.overload_stalled_times) orRefuse(load.admit())
    },
    limitAtOnce({ account }) {
      const count = at_once.get(account) ?? 0
      if (count >= config.account_at_once_max) throw tooMany()
      at_once.set(account, count + 1)
      return () => {
        const left = at_once.get(account)! - 1
        if (left === 0) at_once.delete(account)
        else at_once.set(account, left)
      }
    },
    async admitWork(asked, check = async () => {}) {
      const { admission, giveBack } = await admitLoad(asked, check)
      await tries.counted(asked, { day: giveBack })
      return admission
    },
    async admitPayment(asked, check) {
      const day = await admitLoad(asked, check)
      const { payment_method } = asked.body() as { payment_method: string }
      const card = await cards.take(asked.account, payment_method)
      if (!card.allowed) await day.giveBack()
      orRefuse(admissionOf(card, { code: 'velocity_limited', reason: 'card-velocity' }))
      const account = await accounts.take(asked.account, asked.account)
      if (!account.allowed) await Promise.all([cards.giveBack(card), day.giveBack()])
      const admission = orRefuse(
        admissionOf(account, { code: 'velocity_limited', reason: 'account-velocity' }),
      )
      await tries.counted(asked, {
        day: day.giveBack,
        card: () => Promise.all([cards.giveBack(card), accounts.giveBack(account)]),
      })
      return admission
    },
    cameToNothing: (asked) => tries.cameToNothing(asked),
    begin: (asked) => tries.begin(asked),
    countRequest: () => load.enter(),
    stop: () => load.stop(),
  }
}

const modeOf = (account: string): Mode => (account.endsWith(':live') ? 'live' : 'test')

/** Thrown, and not left to the library to answer: so it looks like all else that the service refuses. No key is claimed either way. */
function orRefuse(admission: Admission): Admission {
  if (admission.admit) return admission
  const { code, retry_after_ms = 1, headers } = admission
  const retry_after = `${Math.max(1, Math.ceil(retry_after_ms / 1_000))}`
  throw new Refused(code as RefusalCode, { headers: { 'Retry-After': retry_after, ...headers } })
}

type RefusalCode =
  | 'rate_limited'
  | 'overloaded'
  | 'velocity_limited'
  | 'limits_unavailable'
  | 'quota_exceeded'
