import type { Attempt, History, Movement } from './history.ts'

/** Attempts by the key that they speak for. An account, an action and a key name one effect. */
export function byKey(attempts: readonly Attempt[]): Map<string, Attempt[]> {
  const groups = new Map<string, Attempt[]>()
  for (const attempt of attempts) {
    const name = `${attempt.account} ${attempt.action} ${attempt.key}`
    groups.set(name, [...(groups.get(name) ?? []), attempt])
  }
  return groups
}

interface Problem {
  readonly code: string
  readonly detail: string
  readonly members: Readonly<Record<string, unknown>>
}

/** The problem details of an answer, or null where it is none. */
export function problemOf({ contentType, text }: Pick<Attempt, 'contentType' | 'text'>): Problem | null {
  if (!contentType.startsWith('application/problem+json')) return null
  try {
    const members = JSON.parse(text) as Record<string, unknown>
    return { code: String(members.code), detail: `${members.title ?? ''} ${members.detail ?? ''}`, members }
  } catch {
    return null
  }
}

/**
 * Rule 2: all successful answers of one key are the same bytes, and each agrees with what the database and the processor
 * have in the end.
 */
export function repliesAgree({ attempts, database, journal }: History): string[] {
  const payments = new Map(database.payments.map((row) => [row.id, row]))
  const charged = new Set(journal.map(({ payment_intent: paymentIntent }) => paymentIntent))
  const found: string[] = []
  for (const [name, group] of byKey(attempts)) {
    const good = group.filter(
      ({ status }) => status !== null && status >= 200 && status < 300 && status !== 202,
    )
    const texts = new Set(good.map(({ text }) => text))
    if (texts.size > 1) found.push(`${name} got ${texts.size} different successful answers.`)
    const [first] = good
    if (first === undefined || first.action === 'transfer') continue
    const reply = JSON.parse(first.text) as { id: string; payment?: string; amount: number }
    const payment = payments.get(reply.payment ?? reply.id)
    if (payment === undefined) found.push(`${name} was told of ${reply.id}, which is not there.`)
    else if (payment.account !== first.account)
      found.push(`${name} was told of a payment of ${payment.account}.`)
    else if (payment.gateway_id === null || !charged.has(payment.gateway_id))
      found.push(`${name} was told of success, and the processor has no such charge.`)
    else if (first.action === 'create' && payment.idempotency_key !== first.key)
      found.push(`${name} was told of a payment of another key.`)
    else if (first.action === 'create' && first.amount !== payment.amount)
      found.push(`${name} asked for ${first.amount} and has ${payment.amount}.`)
  }
  return found
}

/**
 * Rule 3: "not executed" speaks for the key. It is false if an effect of the key is older than the request, or if it came
 * while this request was the only one of its key: a "not executed" that is true leaves the record retryable, and then
 * only another request can make the effect. "This request started nothing" is false if the effect came while no other
 * request of the key had been sent.
 */
export function notExecutedIsTrue(history: History): string[] {
  const effects = effectsByKey(history)
  return [...byKey(history.attempts)].flatMap(([name, group]) => {
    const times = effects.get(name) ?? []
    return group.flatMap((attempt) => {
      const at = times.find((time) => isDenied(attempt, group, time))
      if (at === undefined) return []
      const afterMs = Math.round(attempt.endedAt - at)
      return [
        `${name} was told ${attempt.status} ${problemOf(attempt)?.code} ${afterMs} ms after its effect.`,
      ]
    })
  })
}

/** Whether an answer denies an effect that was there. */
function isDenied(attempt: Attempt, group: readonly Attempt[], effectAt: number): boolean {
  if (effectAt > attempt.endedAt) return false
  const others = group.filter((other) => other !== attempt)
  if (saysNotExecuted(attempt)) {
    return effectAt < attempt.sentAt || !others.some((other) => overlap(other, attempt))
  }
  const startedNothing = problemOf(attempt)?.members.executed === 'not_by_this_request'
  return startedNothing && others.every((other) => other.sentAt > attempt.endedAt)
}

/** By the member for machines, and by the words: a person reads those. */
export function saysNotExecuted(attempt: Attempt): boolean {
  const problem = problemOf(attempt)
  if (problem === null) return false
  if (problem.members.executed === 'no' || problem.members.executed === false) return true
  // A decline is a result, and says so of the money; it is stored under the key.
  return /nothing was (?:executed|done|charged)|was not executed|not executed;|nothing happened/i.test(
    problem.detail,
  )
}

/**
 * A client that hung up has not ended its request: the server goes on with it. So a request without an answer overlaps
 * with everything after it.
 */
function overlap(other: Attempt, attempt: Attempt): boolean {
  const otherEnd = other.end === 'answered' ? other.endedAt : Number.POSITIVE_INFINITY
  return other.sentAt <= attempt.endedAt && otherEnd >= attempt.sentAt
}

/** When the processor made the effects of each key. */
function effectsByKey({ attempts, journal, database }: History): Map<string, number[]> {
  const times = new Map<string, number[]>()
  const note = (name: string, at: number) => times.set(name, [...(times.get(name) ?? []), at])
  const payments = new Map(database.payments.map((row) => [`${row.account} ${row.id}`, row]))
  const refunds = new Map(database.refunds.map((row) => [`${row.account} ${row.id}`, row]))
  const captures = new Map(database.captures.map((row) => [row.id, row]))
  for (const move of journal) {
    const { account, payment, refund } = move.metadata
    if (isCreate(move)) {
      const row = payments.get(`${account} ${payment}`)
      if (row !== undefined) note(`${row.account} create ${row.idempotency_key}`, move.at)
    }
    if (move.kind === 'capture' && !isCreate(move)) {
      const row = captures.get(captureNamedIn(move) ?? '')
      if (row !== undefined) note(`${row.account} capture ${row.idempotency_key}`, move.at)
    }
    if (move.kind === 'void') {
      const key = onlyCancel(attempts, payment)
      if (key !== null) note(`${account} cancel ${key}`, move.at)
    }
    if (move.kind === 'refund') {
      const row = refunds.get(`${account} ${refund}`)
      if (row !== undefined) note(`${row.account} refund ${row.idempotency_key}`, move.at)
    }
  }
  return times
}

/** A capture writes `<amount> <capture> <key>` into the metadata of its intent. */
function captureNamedIn({ metadata }: Movement): string | null {
  const entry = Object.entries(metadata).find(([name]) => name.startsWith('capture_'))
  return entry?.[1].split(' ')[1] ?? null
}

/** The journal does not name the key of a void. Where one key alone asked for it, it is that key's. */
function onlyCancel(attempts: readonly Attempt[], payment: string | undefined): string | null {
  const keys = new Set(
    attempts.filter((one) => one.action === 'cancel' && one.payment === payment).map(({ key }) => key),
  )
  return keys.size === 1 ? [...keys][0]! : null
}

function isCreate({ kind, capture_method: captureMethod }: Movement): boolean {
  return kind === 'authorization' || (kind === 'capture' && captureMethod === 'automatic')
}

/** Texts that only a driver, a runtime or a stack trace writes. */
const DRIVER_TEXT =
  /ECONNRE|EPIPE|ETIMEDOUT|ENOSPC|SQLSTATE|\bpg[-_]|node_modules| {4}at |relation "|duplicate key value|could not serialize|terminating connection|no space left|read-only transaction|Connection terminated|timeout exceeded when|PANIC|FATAL/

/** Rule 7, the part about answers: only documented ones, and no text of a driver. */
export function answersAreDocumented({ attempts, documented }: History): string[] {
  const found = new Set<string>()
  for (const attempt of attempts) {
    if (attempt.end !== 'answered') continue
    const { status, text, contentType } = attempt
    const problem = problemOf(attempt)
    if (DRIVER_TEXT.test(text)) found.add(`${status} holds text of a driver: ${text.slice(0, 200)}`)
    if (status! < 300) {
      if (!contentType.startsWith('application/json')) found.add(`${status} came as ${contentType}.`)
    } else if (problem === null) found.add(`${status} is no problem: ${contentType} ${text.slice(0, 100)}`)
    else if (!documented.get(problem.code)?.has(status!))
      found.add(`${status} ${problem.code} is not documented.`)
  }
  return [...found]
}
