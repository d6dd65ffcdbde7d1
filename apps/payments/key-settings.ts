import { LIMITS } from 'onlyonce/limits'
import type { Reader } from './environment.ts'

/** What is asked of keys, and for how long what they name is kept and tried. */
export interface KeySettings {
  /** Whether clients may bring keys of their own, or only such as this service has issued. */
  readonly issued: 'accepted' | 'required'
  /** How long a key replays, counted from the end of its request. */
  readonly retentionMs: number
  /** The header in which a client says until when its request may begin. Null: there is none. */
  readonly deadlineHeader: string | null
  /** How long after its request a call to the processor may still begin. Null: until its outcome is known. */
  readonly callsDeadlineMs: number | null
}

const HOUR_MS = 3_600_000
const HOURS_MAX = 366 * 24
const SECONDS_MAX = 7 * 86_400

export function readKeySettings(read: Reader): KeySettings {
  const hours = read.whole('RETENTION_HOURS', 1, HOURS_MAX)
  const seconds = read.whole('CALLS_DEADLINE_SECONDS', 1, SECONDS_MAX)
  return {
    issued: read.oneOf('KEYS_ISSUED', ['accepted', 'required']) ?? 'accepted',
    retentionMs: hours === null ? LIMITS.retentionMs : hours * HOUR_MS,
    deadlineHeader: readHeader(read),
    callsDeadlineMs: seconds === null ? null : seconds * 1_000,
  }
}

/** A name of its own: whoever names one that means something else would have that read as a time. */
function readHeader(read: Reader): string | null {
  const name = read.text('DEADLINE_HEADER')
  if (name !== null && !/^x-[a-z0-9-]{1,60}$|^[a-z0-9-]{1,60}-deadline$|^deadline$/i.test(name)) {
    read.wrong('DEADLINE_HEADER', 'is the name of a header that begins with X- or ends with Deadline.')
  }
  return name
}
