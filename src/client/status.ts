/** What the server knows about a key. */
export interface KeyStatus {
  readonly key: string
  /** `none`: no record can be seen. That proves nothing: a request with the key may be on its way. */
  readonly state: 'none' | 'in_progress' | 'completed' | 'retryable' | 'unknown' | 'parked'
  /** Whether the action took effect. Only a completed record tells. */
  readonly executed: 'yes' | 'no' | 'unknown'
  /** The status of the answer that a retry gets; null where there is none yet. */
  readonly status: number | null
  /** Where the result is. */
  readonly location: string | null
  /** A sentence about it. */
  readonly detail: string
}

interface Use {
  readonly state: KeyStatus['state']
  readonly status?: number | null
  readonly location?: string | null
  readonly detail?: string
}

/** Reads `GET /v1/idempotency-keys/{key}` of onlyonce. */
export async function readKeyStatus(response: Response, key: string): Promise<KeyStatus> {
  if (!response.ok) throw new TypeError(`The status of the key could not be read: ${response.status}.`)
  const { uses = [], detail = '' } = (await response.json()) as { uses?: Use[]; detail?: string }
  // One key may have been used for several operations. One that took effect tells it, and one that is not completed leaves the question open.
  const use = uses.find(isDone) ?? uses.find(({ state }) => state !== 'completed') ?? uses[0]
  const { state = 'none', status = null, location = null } = use ?? {}
  return { key, state, executed: executedBy(state, status), status, location, detail: use?.detail ?? detail }
}

const isDone = ({ state, status = null }: Use) => executedBy(state, status) === 'yes'

/** A stored refusal is the end of the action, and nothing came of it. A stored 5xx tells of no end. */
function executedBy(state: KeyStatus['state'], status: number | null): KeyStatus['executed'] {
  if (state !== 'completed' || status === null || status >= 500) return 'unknown'
  return status < 400 ? 'yes' : 'no'
}
