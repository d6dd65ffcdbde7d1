/** Who may go on: how fast an account may be, how often a card may be tried, and how much this process takes on at once. */
import type { FastifyReply } from 'fastify'
import type { Secret } from 'onlyonce'
import type { Admission, Asked } from 'onlyonce/http'
import {
  admissionOf,
  type LimiterOptions,
  limitHeaders,
  overload,
  rateLimit,
  type Verdict,
  velocityLimit,
} from 'onlyonce/rate-limits'
import type { Caller } from './accounts/index.ts'
import type { LimitsConfig } from './config.ts'
import { tooMany } from './database/reads.ts'
import type { Mode } from './gateway/index.ts'
import { LIMITS } from './limits.ts'
import { Refused } from './problems.ts'
import { Provisional } from './provisional.ts'
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
  /** The request is answered: points that it has taken are given back by now, or taken. */
  readonly over: (write: Pick<Asked, 'account' | 'key'>) => void
  /** Counts one more request under way in this process, until what it returns is called. */
  countRequest(): () => void
  stop(): void
}

/** A key is one of its operation: the same text may name a payment and an endpoint. */
type Named = Pick<Asked, 'account' | 'operation' | 'key'>

interface LimitsOptions extends Pick<LimiterOptions, 'pool' | 'pooler' | 'onTrouble'> {
  /** The one that requests wait for; `pool` is that of the limits alone. */
  readonly workPool: LimiterOptions['pool']
  readonly config: LimitsConfig
  readonly secret: Secret
}

export function openLimits({ config, secret, workPool, ...own }: LimitsOptions): ServiceLimits {
  // A rate that cannot be counted is counted by each process: it protects us, and a database that is away answers nothing anyway.
  const shared = { ...own, waitMaxMs: config.waitMaxMs, onError: 'allow' } as const
  // A card that cannot be counted is not charged: whoever could keep it from being counted would have no limit.
  const strict = { ...own, waitMaxMs: config.velocityWaitMaxMs, onError: 'refuse' } as const
  const rates = {
    live: rateLimit({ ...shared, name: 'live', points: config.rateLive, perMs: 1_000 }),
    test: rateLimit({ ...shared, name: 'test', points: config.rateTest, perMs: 1_000 }),
  } satisfies Record<Mode, unknown>
  const bytes =
    typeof secret === 'string' || secret instanceof Uint8Array ? secret : secret.keys[secret.current]!
  const cards = velocityLimit({ ...strict, name: 'card', secret: bytes, rules: config.velocityCard })
  const accounts = velocityLimit({
    ...strict,
    name: 'account',
    secret: bytes,
    rules: config.velocityAccount,
  })
  const { inFlightMax, lagMaxMs, queueMaxMs } = config
  const load = overload({ inFlightMax, lagMaxMs, queueMaxMs, pool: workPool })
  // Not worth a flush to the disk each: after a crash of the database the day begins anew.
  const quotas = {
    live: rateLimit({ ...shared, name: 'quotaLive', points: config.quotaLive, perMs: DAY_MS }),
    test: rateLimit({ ...shared, name: 'quotaTest', points: config.quotaTest, perMs: DAY_MS }),
  } satisfies Record<Mode, unknown>
  const atOnce = new Map<string, number>()
  const tries = new Tries()
  const provisional = new Provisional()
  /** What a limit says of a write. Where it refuses, and a request under way may give points back, the client may come back soon. */
  const judged = <T extends Verdict>(asked: Named, subject: string, verdict: T): Verdict => {
    if (verdict.allowed) provisional.hold(asked, subject)
    else if (verdict.counted && provisional.mayComeBack(subject))
      return { ...verdict, retryAfterMs: Math.min(verdict.retryAfterMs, LIMITS.provisionalRetryMs) }
    return verdict
  }
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
    const told = judged(asked, `day ${asked.account}`, quota)
    const admission = orRefuse(admissionOf(told, { code: 'quota_exceeded', reason: 'daily-quota' }))
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
      if (load.queueMs > queueMaxMs * LIMITS.overloadStalledTimes) orRefuse(load.admit())
    },
    limitAtOnce({ account }) {
      const count = atOnce.get(account) ?? 0
      if (count >= config.accountAtOnceMax) throw tooMany()
      atOnce.set(account, count + 1)
      return () => {
        const left = atOnce.get(account)! - 1
        if (left === 0) atOnce.delete(account)
        else atOnce.set(account, left)
      }
    },
    async admitWork(asked, check = async () => {}) {
      const { admission, giveBack } = await admitLoad(asked, check)
      await tries.counted(asked, { day: giveBack })
      return admission
    },
    async admitPayment(asked, check) {
      const day = await admitLoad(asked, check)
      const { payment_method: paymentMethod } = asked.body() as { payment_method: string }
      const card = await cards.take(asked.account, paymentMethod)
      const cardTold = judged(asked, `card ${asked.account} ${paymentMethod}`, card)
      if (!card.allowed) await day.giveBack()
      orRefuse(admissionOf(cardTold, { code: 'velocity_limited', reason: 'card-velocity' }))
      const account = await accounts.take(asked.account, asked.account)
      const accountTold = judged(asked, `account ${asked.account}`, account)
      if (!account.allowed) await Promise.all([cards.giveBack(card), day.giveBack()])
      const admission = orRefuse(
        admissionOf(accountTold, { code: 'velocity_limited', reason: 'account-velocity' }),
      )
      await tries.counted(asked, {
        day: day.giveBack,
        card: () => Promise.all([cards.giveBack(card), accounts.giveBack(account)]),
      })
      return admission
    },
    cameToNothing: (asked) => tries.cameToNothing(asked),
    begin: (asked) => tries.begin(asked),
    over: (write) => provisional.over(write),
    countRequest: () => load.enter(),
    stop: () => load.stop(),
  }
}

const modeOf = (account: string): Mode => (account.endsWith(':live') ? 'live' : 'test')

/** Thrown, and not left to the library to answer: so it looks like all else that the service refuses. No key is claimed either way. */
function orRefuse(admission: Admission): Admission {
  if (admission.admit) return admission
  const { code, retryAfterMs = 1, headers } = admission
  const retryAfter = `${Math.max(1, Math.ceil(retryAfterMs / 1_000))}`
  throw new Refused(code as RefusalCode, { headers: { 'Retry-After': retryAfter, ...headers } })
}

type RefusalCode =
  | 'rate_limited'
  | 'overloaded'
  | 'velocity_limited'
  | 'limits_unavailable'
  | 'quota_exceeded'
