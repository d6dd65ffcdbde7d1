/** Parameters: 1 account, 2 id, 3-4 from and to, 5-9 counts, 10 when it was read, or null for now. */
export const INSERT_RUN = `
INSERT INTO payments.reconciliation_runs
  (account, id, from_at, to_at, matched, missing_here, missing_there, amount_mismatch, aged_unknown,
   read_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, coalesce($10, now()))`

/**
 * Gives back those that nobody has found before. Parameters: 1 run, 2-7 arrays: account, fingerprint, difference, kind, ours,
 * theirs.
 */
export const INSERT_DIFFERENCES = `
INSERT INTO payments.reconciliation_differences (account, fingerprint, run, difference, kind, ours, theirs)
SELECT account, fingerprint, $1, difference, kind, ours, theirs
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::jsonb[], $7::jsonb[])
  AS found (account, fingerprint, difference, kind, ours, theirs)
ON CONFLICT (account, fingerprint) DO NOTHING
RETURNING account, fingerprint`

/** Exact to the microsecond, as places in an index have to be. */
const exact = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
const time = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

export const NOW = `SELECT ${exact('now()')} AS now`

/**
 * Payments of a processor and mode, of all accounts, in the order of (created_at, id). What is under way, or was changed since
 * the processor's books began to be read, is not known: it may be there in one of them only.
 * Parameters: 1 gateway, 2 mode, 3 since when the processor is read, 4 to, 5-6 behind this time and id, 7 how many.
 */
export const OWN_PAYMENTS = `
SELECT p.account, p.id, p.gateway_id, p.amount::float8, p.currency, ${time('p.created_at')} AS at,
  CASE WHEN p.status IN ('processing', 'unknown') OR p.capturing > 0 OR p.updated_at >= $3::timestamptz THEN NULL
       ELSE p.captured::float8 END AS moved,
  ${time(`CASE
    WHEN p.status IN ('processing', 'unknown') THEN p.created_at
    WHEN p.capturing > 0 THEN (SELECT min(c.created_at) FROM payments.captures c
      WHERE c.account = p.account AND c.payment = p.id AND c.status = 'processing')
    ELSE p.updated_at END`)} AS unknown_since,
  ${exact('p.created_at')} AS place
FROM payments.payments p
WHERE p.gateway = $1 AND p.account LIKE '%:' || $2
  AND p.created_at < $4::timestamptz AND (p.created_at, p.id) > ($5::timestamptz, $6)
ORDER BY p.created_at, p.id LIMIT $7`

/** Refunds, each a movement of its own. Their payment tells when they were changed. Parameters: as above. */
export const OWN_REFUNDS = `
SELECT r.account, r.id, r.gateway_id, r.amount::float8, p.currency, ${time('r.created_at')} AS at,
  CASE WHEN r.status = 'processing' OR p.updated_at >= $3::timestamptz THEN NULL
       WHEN r.status = 'succeeded' THEN r.amount::float8 ELSE 0 END AS moved,
  ${time(`CASE WHEN r.status = 'processing' THEN r.created_at ELSE p.updated_at END`)} AS unknown_since,
  ${exact('r.created_at')} AS place
FROM payments.refunds r JOIN payments.payments p ON p.account = r.account AND p.id = r.payment
WHERE p.gateway = $1 AND r.account LIKE '%:' || $2
  AND r.created_at < $4::timestamptz AND (r.created_at, r.id) > ($5::timestamptz, $6)
ORDER BY r.created_at, r.id LIMIT $7`

/** Which of these accounts are ours. Parameters: 1 accounts. */
export const KNOWN_ACCOUNTS = `SELECT account FROM payments.accounts WHERE account = ANY ($1::text[])`

/**
 * When these days were last compared as a whole, the newest first. Before there was any account, there is nothing to compare.
 * Parameters: 1 books, 2 beginnings of days, 3 mode.
 */
export const DAYS = `
SELECT ${time('day')} AS day,
  ${time(`(SELECT max(r.read_at) FROM payments.reconciliation_runs r
    WHERE r.account = $1 AND r.from_at = day AND r.to_at = day + interval '1 day')`)} AS read_at
FROM unnest($2::timestamptz[]) AS day
WHERE EXISTS (SELECT 1 FROM payments.accounts a WHERE a.account LIKE '%:' || $3 AND a.created_at < day + interval '1 day')
ORDER BY day DESC`
