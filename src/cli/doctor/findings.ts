/** What is made of the facts. Each finding says what to do. */
import { LIMITS } from '../../core/limits.ts'
import { VERSION } from '../../core/version.ts'
import { showDuration } from '../times.ts'
import type { Facts } from './facts.ts'
import { judgeContent } from './of-content.ts'
import { judgeSchema } from './of-schema.ts'

/** `error`: it does not work, or may lose what was promised. `warning`: it will hurt. `notice`: worth knowing. */
export type Level = 'error' | 'warning' | 'notice' | 'ok'

export interface Finding {
  readonly level: Level
  /** What it is about, in a word. */
  readonly about: string
  readonly found: string
  /** What to do about it; null where there is nothing to do. */
  readonly advice: string | null
}

export const ok = (about: string, found: string): Finding => ({ level: 'ok', about, found, advice: null })
export const finding = (level: Level, about: string, found: string, advice: string): Finding => ({
  level,
  about,
  found,
  advice,
})

type Judge = (facts: Facts) => readonly Finding[]

const JUDGES: readonly Judge[] = [
  versions,
  reading,
  clock,
  isolation,
  timeouts,
  durability,
  connections,
  pooler,
  judgeSchema,
  judgeContent,
]

/** Everything that is worth telling, also what is well. */
export function judgeAll(facts: Facts): readonly Finding[] {
  return JUDGES.flatMap((judge) => judge(facts))
}

const OLDEST = 15
const NEWEST_TRIED = 18

function versions({ server }: Facts): readonly Finding[] {
  const major = Math.floor(server.versionNumber / 10_000)
  const here = `PostgreSQL ${server.version}, onlyonce ${VERSION}, Node.js ${process.versions.node}`
  if (major < OLDEST) {
    return [
      finding(
        'error',
        'versions',
        `${here}: this PostgreSQL is too old.`,
        `Upgrade it to ${OLDEST} or later.`,
      ),
    ]
  }
  if (major > NEWEST_TRIED) {
    const advice = `The newest version that the library is tested with is ${NEWEST_TRIED}. Look for a newer onlyonce.`
    return [finding('notice', 'versions', `${here}.`, advice)]
  }
  const encoding =
    server.encoding === 'UTF8'
      ? []
      : [
          finding(
            'error',
            'encoding',
            `The database stores text as ${server.encoding}.`,
            'Use a database with the encoding UTF8: other text than it can hold is refused in the middle of requests.',
          ),
        ]
  return [ok('versions', `${here}.`), ...encoding]
}

function reading({ server, settings }: Facts): readonly Finding[] {
  if (server.standby) {
    const advice =
      'Connect the service to the primary: with target_session_attrs=read-write, or another address.'
    return [finding('error', 'primary', 'This server is a standby, which can only be read.', advice)]
  }
  if (settings.get('default_transaction_read_only') === 'on') {
    const advice = 'Reset default_transaction_read_only for this role and database.'
    return [finding('error', 'primary', 'Transactions of this role only read.', advice)]
  }
  return [ok('primary', 'The server takes writes.')]
}

function clock({ server }: Facts): readonly Finding[] {
  const apartMs = Math.max(0, Math.abs(server.clockAheadMs) - server.clockErrorMs)
  const side = server.clockAheadMs > 0 ? 'ahead of' : 'behind'
  const found = `The clock of the database is ${showDuration(Math.abs(server.clockAheadMs))} ${side} that of this host.`
  const advice =
    'Synchronise both hosts by NTP. Records go by the clock of the database alone; issued keys and webhooks go by that of the process.'
  if (apartMs >= LIMITS.issuedKeySkewMs) return [finding('error', 'clock', found, advice)]
  if (apartMs >= CLOCK_WARNING_MS) return [finding('warning', 'clock', found, advice)]
  return [ok('clock', found)]
}

/** Synchronised clocks differ by milliseconds. */
const CLOCK_WARNING_MS = 1_000

function isolation({ settings }: Facts): readonly Finding[] {
  const level = settings.get('default_transaction_isolation') ?? 'read committed'
  if (level === 'read committed') return [ok('isolation', 'Transactions are read committed by default.')]
  const advice =
    'Everything works, and collisions are run again. Where your transactions do not need it, leave the default at read committed and ask for more with `isolation` in single calls.'
  return [finding('notice', 'isolation', `Transactions are ${level} by default.`, advice)]
}

function timeouts({ settings }: Facts): readonly Finding[] {
  const msOf = (name: string) => Number(settings.get(name) ?? 0)
  const found: Finding[] = []
  const tooShort = (name: string, needMs: number, why: string) => {
    const ms = msOf(name)
    if (ms === 0 || ms >= needMs) return
    const advice = `Raise it above ${showDuration(needMs)} for the role of the service, or take it away: ${why}`
    found.push(finding('warning', 'time-outs', `${name} is ${showDuration(ms)}.`, advice))
  }
  tooShort('statement_timeout', LIMITS.statementMaxMs, 'statements of the library have bounds of their own.')
  tooShort(
    'transaction_timeout',
    LIMITS.transactionMaxMs,
    'it ends transactions that the library would let finish.',
  )
  if (msOf('idle_session_timeout') > 0) {
    const advice =
      'Take it away for the role of the service: it ends the idle connections of its pool, and the next request opens a new one.'
    found.push(
      finding(
        'notice',
        'time-outs',
        `idle_session_timeout is ${showDuration(msOf('idle_session_timeout'))}.`,
        advice,
      ),
    )
  }
  return found.length > 0
    ? found
    : [ok('time-outs', 'No setting of the server is in the way of those of the library.')]
}

function durability({ settings, server }: Facts): readonly Finding[] {
  const found: Finding[] = []
  for (const name of ['fsync', 'full_page_writes']) {
    if (settings.get(name) !== 'off') continue
    const advice = `Turn ${name} on: after a crash of the host the database may be lost or damaged.`
    found.push(finding('error', 'durability', `${name} is off.`, advice))
  }
  const commit = settings.get('synchronous_commit') ?? 'on'
  const standbyNames = settings.get('synchronous_standby_names') ?? ''
  if (commit === 'off') {
    const advice =
      'Turn synchronous_commit on for the role of the service: after a crash a reply that was sent may be forgotten, and its request runs again.'
    found.push(finding('error', 'durability', 'synchronous_commit is off.', advice))
  } else if (standbyNames !== '' && (commit === 'local' || commit === 'remote_write')) {
    const advice =
      'Set it to on: a commit is answered before the standby has it on its disk, so a failover may lose it.'
    found.push(finding('warning', 'durability', `synchronous_commit is ${commit}.`, advice))
  }
  if (server.standbys > 0 && standbyNames === '') {
    const advice =
      'Set synchronous_standby_names, or accept that a failover forgets the last commits: their requests would run again.'
    found.push(
      finding(
        'warning',
        'durability',
        `${server.standbys} standbys follow, and none of them synchronously.`,
        advice,
      ),
    )
  }
  return found.length > 0 ? found : [ok('durability', 'A commit that was answered is on the disk.')]
}

/** From which share of the connections on there is soon none left. */
const FULL_SHARE = 0.8

function connections({ server, settings, given }: Facts): readonly Finding[] {
  const reserved =
    Number(settings.get('superuser_reserved_connections') ?? 0) +
    Number(settings.get('reserved_connections') ?? 0)
  const limits = [
    ['the server', server.connections, Number(settings.get('max_connections') ?? 0) - reserved],
    ['the database', server.databaseConnections, server.databaseConnectionsMax],
    [`the role ${server.role}`, server.roleConnections, server.roleConnectionsMax],
  ] as const
  const found = limits.flatMap(([of, used, max]) => {
    if (max < 0 || used < max * FULL_SHARE) return []
    const advice =
      'Enlarge it, lower the pools, or put a pooler in front: requests wait for a connection, and are told 503.'
    return [
      finding('warning', 'connections', `${used} of the ${max} connections of ${of} are in use.`, advice),
    ]
  })
  if (given.poolSize !== null) found.push(...poolSize(given.poolSize, given.processes, limits))
  const [, used, max] = limits[0]
  return found.length > 0
    ? found
    : [ok('connections', `${used} of the ${max} connections of the server are in use.`)]
}

function poolSize(
  size: number,
  processes: number,
  limits: readonly (readonly [of: string, used: number, max: number])[],
): readonly Finding[] {
  const wanted = size * processes
  const found = limits.flatMap(([of, , max]) => {
    if (max < 0 || wanted <= max) return []
    const advice = 'Make the pools smaller, or allow more connections: the last processes get none.'
    return [
      finding(
        'error',
        'pool size',
        `${processes} processes with pools of ${size} want ${wanted} connections, and ${of} has ${max}.`,
        advice,
      ),
    ]
  })
  if (size <= 2) {
    const advice =
      'Use at least 3: of a pool of n, n-1 run transactions, and the last one stays free for lookups.'
    found.push(
      finding('warning', 'pool size', `A pool of ${size} has no connection left for lookups.`, advice),
    )
  }
  return found
}

function pooler({ server, given }: Facts): readonly Finding[] {
  if (!server.pooled) return [ok('pooler', 'No pooler is between this process and the database.')]
  if (given.pooler === 'transaction') return [ok('pooler', 'A pooler is in between, and its mode was told.')]
  const advice =
    "In transaction mode, pass pooler: 'transaction' to postgres(), and --pooler transaction here. In session mode nothing is to be done. In statement mode nothing works."
  return [finding('warning', 'pooler', 'A pooler is between this process and the database.', advice)]
}
