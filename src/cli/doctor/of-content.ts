/** What waits in the tables, and whether the secrets fit. */
import { LIMITS } from '../../core/limits.ts'
import type { KeyPurpose, KeyRing } from '../../core/ring.ts'
import { showDuration } from '../times.ts'
import type { Content, Facts, Given } from './facts.ts'
import { type Finding, finding, ok } from './findings.ts'

export function judgeContent({ content, given }: Facts): readonly Finding[] {
  if (content === null) return []
  return [...stuck(content), ...overdue(content), ...outbox(content), ...keys(content, given)]
}

function stuck({ stuck }: Content): readonly Finding[] {
  const found = Object.entries(stuck).filter(([, { count }]) => count > 0)
  if (found.length === 0) return [ok('stuck', 'No record is unfinished for too long.')]
  const told = found.map(
    ([state, { count, oldestAgeMs }]) => `${count} ${state} (the oldest for ${showDuration(oldestAgeMs)})`,
  )
  const advice =
    'Look with `onlyonce list`, and settle what no worker can: `onlyonce show`, `resolve`, `evidence`. What is in progress needs workers: startWorkers.'
  return [
    finding(
      'warning',
      'stuck',
      `Unfinished for over ${showDuration(LIMITS.stuckAfterMs)}: ${told.join(', ')}.`,
      advice,
    ),
  ]
}

function overdue({ overdue }: Content): readonly Finding[] {
  if (overdue === 0) return [ok('reaper', 'Expired records are removed in time.')]
  const count = overdue >= LIMITS.overdueCountedMax ? `${overdue} or more` : `${overdue}`
  const advice =
    'No reaper keeps up: run startWorkers or the background loop with a role that may DELETE, or `onlyonce reap`.'
  return [
    finding(
      'warning',
      'reaper',
      `${count} records are past their retention for over ${showDuration(LIMITS.stuckAfterMs)}.`,
      advice,
    ),
  ]
}

/** Half of what delivered events are kept for: a relay that is away that long is not only slow. */
const LAG_MAX_MS = 300_000

function outbox({ lags }: Content): readonly Finding[] {
  return lags.flatMap(({ destination, count, oldestAgeMs, parked }) => {
    const found: Finding[] = []
    if (count > 0 && oldestAgeMs >= LAG_MAX_MS) {
      found.push(
        finding(
          'warning',
          'outbox',
          `${destination} waits for ${count} events, the oldest for ${showDuration(oldestAgeMs)}.`,
          'Look whether a relay runs and whether the destination answers; forget(destination) where it is used no more.',
        ),
      )
    }
    if (parked > 0) {
      found.push(
        finding(
          'warning',
          'outbox',
          `${parked} events for ${destination} are parked.`,
          'See `onlyonce outbox parked`, repair the destination, and `onlyonce outbox replay --all`.',
        ),
      )
    }
    return found
  })
}

function keys({ keys }: Content, given: Given): readonly Finding[] {
  return [
    ...ofPurpose('fingerprint', 'secret', given.secret),
    ...ofPurpose('reply', 'encryption', given.encryption),
  ]

  function ofPurpose(purpose: KeyPurpose, option: string, ring: KeyRing | null): readonly Finding[] {
    const listed = keys.filter((one) => one.purpose === purpose)
    const names = listed.map(({ keyId }) => keyId).join(', ')
    if (listed.length > 1) {
      const found = `${option} has several keys in use: ${names}.`
      return [
        finding('notice', 'keys', found, '`onlyonce rotate` tells what still needs an old one.'),
        ...compared(listed, option, ring),
      ]
    }
    const found = compared(listed, option, ring)
    return found.length > 0 || listed.length === 0
      ? found
      : [ok('keys', `${option} has one key in use: ${names}.`)]
  }
}

/** Only where the ring was given here: the database knows a digest of each key, and no key. */
function compared(listed: Content['keys'], option: string, ring: KeyRing | null): readonly Finding[] {
  if (ring === null) return []
  return listed.flatMap(({ keyId, digest }) => {
    if (!ring.keyIds.includes(keyId)) {
      return [
        finding(
          'error',
          'keys',
          `The ring that was given lacks the ${option} key ${JSON.stringify(keyId)}.`,
          'Add it: a start is refused while records need it.',
        ),
      ]
    }
    if (digest === null || digest === ring.digestOf(keyId)) return []
    return [
      finding(
        'error',
        'keys',
        `The ${option} key ${JSON.stringify(keyId)} has other bytes in the service.`,
        'Give new bytes a new id: under other bytes every retry looks like another request.',
      ),
    ]
  })
}
