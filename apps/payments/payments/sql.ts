/** Statements of payments. Whatever may exceed something is a condition of the UPDATE: the row is the judge. */

export const time = (column: string) =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** Amounts are far below 2^53, so a double holds them exactly. */
export const COLUMNS = `
  p.account, p.id, p.status, p.amount::float8, p.currency, p.capture_method, p.payment_method, p.payer, p.reference,
  p.metadata, p.idempotency_key, p.gateway, p.gateway_id, p.unique_reference, p.captured::float8, p.capturing::float8,
  p.refunded::float8, p.refunding::float8, p.held::float8, p.closing, p.decline, p.duplicate_of,
  ${time('p.capture_before')} AS capture_before, ${time('p.created_at')} AS created_at,
  ${time('p.updated_at')} AS updated_at`

export const ATTEMPTS = `
  (SELECT coalesce(json_agg(json_build_object('number', a.number, 'gateway', a.gateway, 'gateway_id', a.gateway_id,
     'status', a.status, 'decline', a.decline) ORDER BY a.number), '[]')
   FROM payments.attempts a WHERE a.account = p.account AND a.payment = p.id) AS attempts`

/** What becomes of a duplicate: as the request says, or else as its account does. */
const refuses = (asked: string) =>
  `coalesce(${asked}::text, (SELECT c.duplicates FROM payments.accounts c WHERE c.account = $1)) IS NOT DISTINCT FROM 'refuse'`

/**
 * No row where a unique index has another payment with the same intent, or the same unique reference.
 *
 * Payments with one intent are made one after the other, also those that refuse no others: FIND_EARLIER, which comes afterwards, sees what
 * was committed, and one that is being made is in no index of those that refuse. The lock comes before the row, and so before every
 * wait for an index.
 * 1 account, 2 id, 3 amount, 4 currency, 5 capture method, 6 payment method, 7 payer, 8 reference, 9 metadata, 10 key, 11 gateway,
 * 12 unique reference, 13 what becomes of duplicates.
 */
export const INSERT_PAYMENT = `
WITH locked AS MATERIALIZED (
  SELECT CASE WHEN $8::text IS NOT NULL THEN pg_advisory_xact_lock(hashtextextended(
    jsonb_build_array('payments of one intent', $1::text, $8::text, $3::bigint, $4::text, coalesce($7::text, $6::text))::text, 0)) END
), payment AS (
  INSERT INTO payments.payments
    (account, id, amount, currency, capture_method, payment_method, payer, reference, metadata, idempotency_key, gateway,
     unique_reference, refuses_duplicates)
  SELECT $1, $2::text, $3, $4, $5::text, $6, $7, $8, $9::jsonb, $10::text, $11::text, $12::text,
    $8::text IS NOT NULL AND ${refuses('$13')}
  FROM locked
  ON CONFLICT DO NOTHING
  RETURNING id, refuses_duplicates
), attempt AS (
  INSERT INTO payments.attempts (account, payment, number, gateway) SELECT $1, id, 1, $11 FROM payment
)
SELECT refuses_duplicates FROM payment`

const LIVE = `p.status NOT IN ('failed', 'canceled', 'expired')`

/**
 * What is in the way of a payment, those that cannot make room first, then the oldest: one with its unique reference; and, where duplicates are refused, one with its
 * payer, amount and reference, whether that one refuses others or not. One whose time is over counts only while it is in the index.
 * 1 account, 2 id, 3 unique reference, 4 reference, 5 amount, 6 currency, 7 payer or method, 8 what becomes of duplicates, 9 minutes,
 * 10 how many.
 */
export const FIND_EARLIER = `
SELECT id, status, idempotency_key, field, over FROM (
  SELECT p.id, p.status, p.idempotency_key, 'unique_reference' AS field, false AS over, true AS counts
  FROM payments.payments p
  WHERE p.account = $1 AND p.unique_reference = $3 AND p.id <> $2 AND ${LIVE}
  UNION ALL
  SELECT p.id, p.status, p.idempotency_key, 'reference', t.over, p.refuses_duplicates OR NOT t.over
  FROM payments.payments p
  CROSS JOIN LATERAL (
    SELECT p.status = 'succeeded' AND NOT EXISTS (
      SELECT FROM payments.attempts a WHERE a.account = $1 AND a.payment = p.id
        AND (a.ended_at IS NULL OR a.ended_at > now() - $9 * interval '1 minute')) AS over
  ) AS t
  WHERE p.account = $1 AND p.reference = $4 AND p.amount = $5 AND p.currency = $6
    AND coalesce(p.intent_payer, p.payer, p.payment_method) = $7 AND p.id <> $2 AND ${LIVE} AND ${refuses('$8')}
) AS earlier
WHERE counts ORDER BY over OR status IN ('processing', 'unknown'), id LIMIT $10`

/** Others with its intent may begin. 1 account, 2 payment. */
export const FORGET_INTENT = `
UPDATE payments.payments SET refuses_duplicates = false WHERE account = $1 AND id = $2`

/**
 * What the processor said about a new payment. A payment of the same payer, amount and reference that came shortly before is
 * named, and nothing more: two honest payments look like that, too.
 * 1 account, 2 id, 3 status, 4 gateway id, 5 captured, 6 held, 7 capture before, 8 decline, 9 status of the attempt, 10 minutes,
 * 11 the first id that is looked at: of one reference there may be any number.
 */
export const SETTLE_PAYMENT = `
WITH attempt AS (
  UPDATE payments.attempts SET status = $9, gateway_id = $4, decline = $8, ended_at = now()
  WHERE account = $1 AND payment = $2 AND number = 1
)
UPDATE payments.payments AS p
SET status = $3, gateway_id = $4, captured = $5, held = $6, capture_before = $7, decline = $8, updated_at = now(),
    duplicate_of = CASE WHEN p.reference IS NOT NULL THEN (
      SELECT o.id FROM payments.payments o
      WHERE o.account = $1 AND o.reference = p.reference AND o.id < p.id AND o.id >= $11 AND o.amount = p.amount
        AND o.currency = p.currency AND coalesce(o.intent_payer, o.payer, o.payment_method)
          = coalesce(p.intent_payer, p.payer, p.payment_method)
        AND o.created_at > p.created_at - $10 * interval '1 minute'
        AND o.status NOT IN ('failed', 'canceled', 'expired')
      ORDER BY o.id DESC LIMIT 1) END
WHERE p.account = $1 AND p.id = $2 AND p.status IN ('processing', 'unknown')
RETURNING ${COLUMNS},
  json_build_array(json_build_object('number', 1, 'gateway', p.gateway, 'gateway_id', $4::text, 'status', $9::text,
    'decline', $8::jsonb)) AS attempts`

/** A payment that nobody else changes until the step ends. 1 account, 2 payment. */
export const LOCK_PAYMENT = `
SELECT ${COLUMNS}, ${ATTEMPTS} FROM payments.payments p WHERE p.account = $1 AND p.id = $2 FOR UPDATE`

/** 1 account, 2 payment, 3 amount, 4 final, 5 id, 6 key, 7 who is closing it, if anybody. */
export const RESERVE_CAPTURE = `
WITH capture AS (
  INSERT INTO payments.captures (account, payment, id, amount, final, idempotency_key) VALUES ($1, $2, $5, $3, $4, $6)
)
UPDATE payments.payments SET capturing = capturing + $3, closing = $7, updated_at = now()
WHERE account = $1 AND id = $2`

/** 1 account, 2 payment, 3 capture, 4 status of the capture, 5 decline. */
const END_CAPTURE = `
WITH capture AS (
  UPDATE payments.captures SET status = $4, decline = $5
  WHERE account = $1 AND payment = $2 AND id = $3 AND status = 'processing'
)`

/** 6 reserved before, 7 captured now, 8 released, 9 status, 10 closing. */
export const SETTLE_CAPTURE = `${END_CAPTURE}
UPDATE payments.payments AS p
SET capturing = capturing - $6, captured = captured + $7, held = held - $8, status = $9, closing = $10,
    updated_at = now()
WHERE p.account = $1 AND p.id = $2
RETURNING ${COLUMNS}, ${ATTEMPTS}`

/** No capture may begin from now on. 1 account, 2 payment, 3 who is closing it. */
export const CLOSE_PAYMENT = `
UPDATE payments.payments SET closing = $3, updated_at = now() WHERE account = $1 AND id = $2`

/** The rest was let go of. 1 account, 2 payment, 3 status. */
export const SETTLE_VOID = `
UPDATE payments.payments AS p SET status = $3, held = 0, closing = NULL, updated_at = now()
WHERE p.account = $1 AND p.id = $2
RETURNING ${COLUMNS}, ${ATTEMPTS}`

/** The processor did not let go of it. 1 account, 2 payment, 3 hours until it is tried again where it was due. */
export const REOPEN_PAYMENT = `
UPDATE payments.payments AS p SET closing = NULL, updated_at = now(),
  capture_before = CASE WHEN p.capture_before <= now() THEN now() + $3 * interval '1 hour' ELSE p.capture_before END
WHERE p.account = $1 AND p.id = $2
RETURNING ${COLUMNS}, ${ATTEMPTS}`

/** 1 account, 2 payment, 3 amount, 4 id, 5 reason, 6 metadata, 7 key. */
export const RESERVE_REFUND = `
WITH payment AS (
  UPDATE payments.payments SET refunding = refunding + $3, updated_at = now() WHERE account = $1 AND id = $2
)
INSERT INTO payments.refunds (account, payment, id, amount, reason, metadata, idempotency_key)
VALUES ($1, $2, $4, $3, $5, $6, $7)`

export const REFUND_COLUMNS = `
  r.id, r.payment, r.amount::float8, p.currency, r.reason, r.metadata, r.status, r.decline,
  ${time('r.created_at')} AS created_at`

/** 1 account, 2 payment, 3 refund, 4 status, 5 decline, 6 reserved before, 7 refunded now, 8 gateway id. */
export const SETTLE_REFUND = `
WITH payment AS (
  UPDATE payments.payments SET refunding = refunding - $6, refunded = refunded + $7, updated_at = now()
  WHERE account = $1 AND id = $2
)
UPDATE payments.refunds AS r SET status = $4, decline = $5, gateway_id = $8
FROM payments.payments p
WHERE r.account = $1 AND r.payment = $2 AND r.id = $3 AND p.account = $1 AND p.id = $2
RETURNING ${REFUND_COLUMNS}`

/** 1 account, 2 payment. */
export const SELECT_PAYMENT = `
SELECT ${COLUMNS}, ${ATTEMPTS} FROM payments.payments p WHERE p.account = $1 AND p.id = $2`

/** 1 account, 2 id. */
export const SELECT_CURRENCY = `
SELECT currency FROM payments.payments WHERE account = $1 AND id = $2`

/**
 * Newest first. 1 account, 2 status, 3 reference, 4 metadata, 5 from, 6 to, 7 before this id, 8 how many, 9 and 10 the ids between
 * which these times are: no index has them. Null is any.
 */
export const LIST_PAYMENTS = `
SELECT ${COLUMNS}, ${ATTEMPTS} FROM payments.payments p
WHERE p.account = $1
  AND ($2::text IS NULL OR p.status = $2) AND ($3::text IS NULL OR p.reference = $3)
  AND ($4::jsonb IS NULL OR (p.metadata <> '{}' AND p.metadata @> $4))
  AND ($5::timestamptz IS NULL OR p.created_at >= $5) AND ($6::timestamptz IS NULL OR p.created_at < $6)
  AND ($7::text IS NULL OR p.id < $7)
  AND ($9::text IS NULL OR p.id >= $9) AND ($10::text IS NULL OR p.id < $10)
ORDER BY p.id DESC LIMIT $8`

const REFUNDS_OF = `
SELECT ${REFUND_COLUMNS}
FROM payments.refunds r JOIN payments.payments p ON p.account = r.account AND p.id = r.payment
WHERE r.account = $1 AND r.payment = $2`

/** 1 account, 2 payment, 3 refund. */
export const SELECT_REFUND = `${REFUNDS_OF} AND r.id = $3`

/** 1 account, 2 payment, 3 before this id, 4 how many. */
export const LIST_REFUNDS = `${REFUNDS_OF}
  AND ($3::text IS NULL OR r.id < $3)
ORDER BY r.id DESC LIMIT $4`
