/** Statements about what is under way or was left: what requests hold, what workers look for, and what is let go of. */
import { ATTEMPTS, COLUMNS, REFUND_COLUMNS, time } from './sql.ts'

/** What captures or refunds of a payment have reserved that are under way, the oldest first. 1 account, 2 payment, 3 how many. */
const underWay = (table: string) => `
SELECT id, idempotency_key AS key, amount::float8 FROM payments.${table}
WHERE account = $1 AND payment = $2 AND status = 'processing' ORDER BY id LIMIT $3`
export const CAPTURES_UNDER_WAY = underWay('captures')
export const REFUNDS_UNDER_WAY = underWay('refunds')

/**
 * What the request with a key holds, the newest first; the payment is locked. 1 account, 2 key, or operation and key of who is closing
 * it, 3 the id of what is held, where it is known: an earlier request with the same key may have left something, too.
 */
const heldBy = (of: string, final: string, from: string, locked = 'p') => `
SELECT p.id AS payment, ${of}.id, ${of}.amount::float8, p.currency, ${final} AS final, p.gateway_id, p.capture_method,
  p.captured::float8
FROM ${from} AND ($3::text IS NULL OR ${of}.id = $3)
ORDER BY ${of}.id DESC LIMIT 1 FOR UPDATE OF ${locked}`
const ofTable = (table: string, final: string) =>
  heldBy(
    'h',
    final,
    `payments.${table} h JOIN payments.payments p ON p.account = h.account AND p.id = h.payment
WHERE h.account = $1 AND h.idempotency_key = $2 AND h.status = 'processing'`,
    // After a wait for the payment the database looks at locked rows alone once more: another decision may have settled this one.
    'p, h',
  )
export const HELD_BY_CAPTURE = ofTable('captures', 'h.final')
export const HELD_BY_REFUND = ofTable('refunds', 'false')
export const HELD_BY_CREATE = heldBy(
  'p',
  'false',
  `payments.payments p WHERE p.account = $1 AND p.idempotency_key = $2 AND p.status IN ('processing', 'unknown')`,
)
export const HELD_BY_CLOSING = heldBy(
  'p',
  'false',
  'payments.payments p WHERE p.account = $1 AND p.closing = $2',
)

/**
 * Lists of workers: over all accounts, of what is so old. Each page goes on behind the last row of the one before: the first rows
 * may be those that nobody can end now, and must not keep the others.
 * 1 age in seconds, 2 how many, 3-5 place, account and id of the last row; null from the start.
 */
const olderBy = (column: string) => `p.${column} <= now() - $1 * interval '1 second'
  AND ($3::timestamptz IS NULL OR (p.${column}, p.account, p.id) > ($3, $4, $5))
ORDER BY p.${column}, p.account, p.id LIMIT $2`

/** Held longer than the processor holds it, and nobody is at work on it. */
export const DUE_PAYMENTS = `
SELECT account, id, ${time('capture_before')} AS capture_before, capture_before::text AS place FROM payments.payments p
WHERE status IN ('requires_capture', 'partially_captured') AND capturing = 0
  AND (closing IS NULL OR starts_with(closing, 'payments.expire ')) AND ${olderBy('capture_before')}`

/** Since when it is there, in milliseconds by the database's clock, and whether nothing happened to it for very long. 6 seconds. */
const since = (column: string) => `(extract(epoch FROM p.created_at) * 1000)::float8 AS since_ms,
  p.${column} <= now() - $6 * interval '1 second' AS abandoned, p.${column}::text AS place`

/** Nobody has settled them for a while. */
export const UNSETTLED_PAYMENTS = `
SELECT account, id, status, idempotency_key, ${since('created_at')} FROM payments.payments p
WHERE status IN ('processing', 'unknown') AND ${olderBy('created_at')}`

export const UNSETTLED_CAPTURES = `
SELECT account, payment, 'payments.capture' AS operation, idempotency_key AS key, id, ${since('created_at')}
FROM payments.captures p WHERE status = 'processing' AND ${olderBy('created_at')}`

export const UNSETTLED_REFUNDS = `
SELECT account, payment, 'refunds.create' AS operation, idempotency_key AS key, id, ${since('created_at')}
FROM payments.refunds p WHERE status = 'processing' AND ${olderBy('created_at')}`

/** Whoever closes a payment, without captures: those are in a list of their own. */
export const UNSETTLED_CLOSINGS = `
SELECT account, id AS payment, split_part(closing, ' ', 1) AS operation,
  substr(closing, strpos(closing, ' ') + 1) AS key, id, ${since('updated_at')}
FROM payments.payments p WHERE closing IS NOT NULL AND NOT starts_with(closing, 'payments.capture ') AND ${olderBy('updated_at')}`

/** Nothing became of it, and nobody can come back to it. 1 account, 2 payment, 3 capture, 4 why. */
export const DROP_CAPTURE = `
WITH capture AS (
  UPDATE payments.captures SET status = 'failed', decline = $4
  WHERE account = $1 AND payment = $2 AND id = $3 AND status = 'processing'
  RETURNING amount, final
)
UPDATE payments.payments p SET capturing = capturing - c.amount, updated_at = now(),
  closing = CASE WHEN c.final THEN NULL ELSE p.closing END
FROM capture c WHERE p.account = $1 AND p.id = $2`

/** 1 account, 2 payment, 3 refund, 4 why. */
export const DROP_REFUND = `
WITH refund AS (
  UPDATE payments.refunds SET status = 'failed', decline = $4
  WHERE account = $1 AND payment = $2 AND id = $3 AND status = 'processing'
  RETURNING *
), payment AS (
  UPDATE payments.payments p SET refunding = refunding - r.amount, updated_at = now()
  FROM refund r WHERE p.account = $1 AND p.id = $2
  RETURNING p.currency
)
SELECT ${REFUND_COLUMNS} FROM refund r, payment p`

/**
 * 1 account, 2 payment, 3 who was closing it, 4 hours until a worker tries again that let go of what was due, 5 since when it has
 * been so, where that is known: the same key may be at work on it again.
 */
export const DROP_CLOSING = `
UPDATE payments.payments SET closing = NULL, updated_at = now(),
  capture_before = CASE WHEN starts_with($3, 'payments.expire ') AND capture_before <= now()
    THEN now() + $4 * interval '1 hour' ELSE capture_before END
WHERE account = $1 AND id = $2 AND closing = $3 AND ($5::timestamptz IS NULL OR updated_at = $5)`

/** 1 account, 2 payment, 3 why. */
export const DROP_PAYMENT = `
WITH attempt AS (
  UPDATE payments.attempts SET status = 'declined', decline = $3, ended_at = now()
  WHERE account = $1 AND payment = $2 AND status = 'processing'
)
UPDATE payments.payments AS p SET status = 'failed', decline = $3, updated_at = now()
WHERE p.account = $1 AND p.id = $2 AND p.status IN ('processing', 'unknown')
RETURNING ${COLUMNS}, ${ATTEMPTS}`

/** By which operation one of ours got what the processor calls so, in the mode of an account. 1 account, 2 gateway id. */
export const GATEWAY_ID_OWNERS = `
SELECT 'payments.create' AS operation, id AS owner, account FROM payments.payments
WHERE gateway_id = $2 AND status <> 'failed' AND NOT shares_gateway_id AND split_part(account, ':', 2) = split_part($1, ':', 2)
UNION
SELECT 'refunds.create', id, account FROM payments.refunds
WHERE gateway_id = $2 AND status <> 'failed' AND NOT shares_gateway_id AND split_part(account, ':', 2) = split_part($1, ':', 2)`

/** 1 account, 2 payment. */
export const MARK_UNKNOWN = `
UPDATE payments.payments AS p SET status = 'unknown', updated_at = now()
WHERE p.account = $1 AND p.id = $2 AND p.status = 'processing'
RETURNING ${COLUMNS}, ${ATTEMPTS}`

/**
 * One page of the payments of an account, without a payer. A pseudonym leaves the metadata; nothing in its place takes it, too. For a
 * while the payment is still compared with others by the payer that it had.
 * 1 account, 2 payer, 3 pseudonym or NULL, 4 behind which payment, 5 how many are looked at, 6 for how many minutes it is compared.
 */
export const FORGET_PAYER = `
WITH page AS (
  SELECT id FROM payments.payments WHERE account = $1 AND ($4::text IS NULL OR id > $4) ORDER BY id LIMIT $5
), changed AS (
  UPDATE payments.payments p
  SET payer = $3, intent_payer = coalesce(p.intent_payer, p.payer),
    intent_payer_until = coalesce(p.intent_payer_until, now() + $6 * interval '1 minute'),
    metadata = CASE WHEN $3::text IS NULL THEN '{}' ELSE p.metadata END
  FROM page WHERE p.account = $1 AND p.id = page.id AND p.payer = $2
  RETURNING p.id
), refunds AS (
  UPDATE payments.refunds r SET metadata = '{}'
  FROM changed WHERE $3::text IS NULL AND r.account = $1 AND r.payment = changed.id
)
SELECT (SELECT count(*)::int FROM changed) AS changed, (SELECT count(*)::int FROM page) AS read,
  (SELECT max(id) FROM page) AS last`

/** The last copy of forgotten payers, where no other payment is compared with theirs any more. 1 how many. */
export const FORGET_INTENT_PAYERS = `
WITH due AS (
  SELECT account, id FROM payments.payments
  WHERE intent_payer_until <= now() AND status IN ('succeeded', 'failed', 'canceled', 'expired')
  ORDER BY intent_payer_until LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE payments.payments p SET intent_payer = '', intent_payer_until = NULL, refuses_duplicates = false
FROM due WHERE p.account = due.account AND p.id = due.id`
