import type { EventRow, History, ProcessLife } from './history.ts'

/** Rule 6: after the last fault everything is terminal, or parked with a documented reason, within the stated time. */
export function everythingEnds({ database, quietS, quietLimitS, parkReasons }: History): string[] {
  const found: string[] = []
  const open = database.records.filter(({ state }) => state === 'in_progress' || state === 'unknown')
  if (quietS === null) found.push(`${open.length} records were not terminal within ${quietLimitS} s.`)
  for (const { operation, key, state } of open) found.push(`${operation} ${key} is still ${state}.`)
  const parked = new Set<string>()
  for (const { account, operation, key, state, error_code: errorCode } of database.records) {
    if (state !== 'parked') continue
    parked.add(`${account} ${key}`)
    if (!parkReasons.has(errorCode ?? ''))
      found.push(`${operation} ${key} is parked for ${errorCode}, which is not documented.`)
  }
  for (const { account, id, status, idempotency_key: idempotencyKey } of database.payments) {
    if (!['processing', 'unknown'].includes(status) || parked.has(`${account} ${idempotencyKey}`)) continue
    const record = database.records.find((row) => row.account === account && row.key === idempotencyKey)
    // A record that is retryable may run again: until the client comes back its payment stays as it is.
    if (record?.state !== 'retryable')
      found.push(`${id} is ${status}, and its record is ${record?.state ?? 'gone'}.`)
  }
  return found
}

const UNHANDLED =
  /unhandled|uncaught|MaxListenersExceeded|DeprecationWarning|is not a function|Cannot read propert/i
/** How much the resident memory may grow between the second and the last quarter of a long life. */
const MEMORY_GROWTH_MAX = 1.6
const MEMORY_SLACK_MB = 80
const DESCRIPTORS_SLACK = 200
const SAMPLES_MIN = 40

/** Rule 7, the part about processes: none ends by itself, nothing is unhandled, memory and descriptors stay flat. */
export function processesLive({ processes }: History): string[] {
  return processes.flatMap((life) => {
    const found: string[] = []
    if (life.end === 'by_itself') found.push(`${life.name} ended by itself: ${life.output.slice(-400)}`)
    const line = life.output.split('\n').find((text) => UNHANDLED.test(text))
    if (line !== undefined) found.push(`${life.name} wrote: ${line.slice(0, 200)}`)
    return [...found, ...growth(life)]
  })
}

function growth({ name, samples }: ProcessLife): string[] {
  if (samples.length < SAMPLES_MIN) return []
  const quarter = Math.floor(samples.length / 4)
  const early = samples.slice(quarter, 2 * quarter)
  const late = samples.slice(-quarter)
  const [rssBefore, rssAfter] = [early, late].map((part) => median(part.map(({ rssMb }) => rssMb))) as [
    number,
    number,
  ]
  const [openBefore, openAfter] = [early, late].map((part) =>
    median(part.map(({ descriptors }) => descriptors)),
  ) as [number, number]
  return [
    ...(rssAfter > rssBefore * MEMORY_GROWTH_MAX + MEMORY_SLACK_MB
      ? [`${name} grew from ${rssBefore} to ${rssAfter} MB.`]
      : []),
    ...(openAfter > openBefore + DESCRIPTORS_SLACK
      ? [`${name} went from ${openBefore} to ${openAfter} open descriptors.`]
      : []),
  ]
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

/** Rule 8: every event reaches its account's endpoint, under one id with one body, and is numbered without a gap. */
export function eventsArrive({ database, endpoints, deliveries }: History): string[] {
  const found: string[] = []
  const bodies = new Map<string, string>()
  for (const { path, id, body } of deliveries) {
    const name = `${path} ${id}`
    const before = bodies.get(name)
    if (before !== undefined && before !== body) found.push(`Message ${id} came to ${path} with two bodies.`)
    bodies.set(name, body)
  }
  const arrived = new Map<string, Set<string>>()
  for (const { path, id } of deliveries) arrived.set(path, (arrived.get(path) ?? new Set()).add(digits(id)))
  const waiting = new Set(database.pendingMessages.map(({ account, id }) => `${account} ${digits(id)}`))
  for (const { account, path } of endpoints) {
    const got = arrived.get(path) ?? new Set()
    const missing = database.events.filter(
      (event) =>
        event.account === account &&
        !got.has(digits(event.id)) &&
        !waiting.has(`${account} ${digits(event.id)}`),
    )
    for (const { id, type } of missing) found.push(`${type} ${id} never came to ${path}.`)
  }
  return [...found, ...gaps(database.events)]
}

/** An event's id is a UUID in the table, and has a prefix where it is shown. */
function digits(id: string): string {
  return id.replace(/^evt_/, '').replaceAll('-', '')
}

function gaps(events: readonly EventRow[]): string[] {
  const numbers = new Map<string, number[]>()
  for (const { account, aggregate, sequence } of events) {
    if (aggregate === null || sequence === null) continue
    const name = `${account} ${aggregate}`
    numbers.set(name, [...(numbers.get(name) ?? []), sequence])
  }
  return [...numbers].flatMap(([name, found]) => {
    const sorted = [...found].sort((a, b) => a - b)
    return sorted.every((number, index) => number === index + 1)
      ? []
      : [`The events of ${name} are numbered ${sorted}.`]
  })
}

/** Rule 9: nothing crosses accounts, neither in an answer nor in a webhook. */
export function tenantsStayApart({ attempts, database, deliveries, endpoints }: History): string[] {
  const found: string[] = []
  const owner = new Map<string, string>()
  for (const { id, account } of [...database.payments, ...database.captures, ...database.refunds])
    owner.set(id, account)
  const check = (text: string, account: string, where: string) => {
    for (const [id] of text.matchAll(/\b(?:pay|ref)_[0-9a-f]{32}\b/g)) {
      const actual = owner.get(id)
      if (actual !== undefined && actual !== account)
        found.push(`${where} of ${account} names ${id} of ${actual}.`)
    }
  }
  for (const { text, account } of attempts) check(text, account, 'An answer')
  const accountOf = new Map(endpoints.map(({ account, path }) => [path, account]))
  for (const { path, body } of deliveries) {
    const account = accountOf.get(path)
    if (account !== undefined) check(body, account, 'A webhook')
  }
  return found
}

/** Rule 10: the canary card number is in no table, log, answer or webhook. */
export function nothingLeaks({ canarySeenIn }: History): string[] {
  return canarySeenIn.map((place) => `The card number is in ${place}.`)
}
