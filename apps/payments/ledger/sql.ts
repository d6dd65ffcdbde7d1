/** Parameters: 1 account, 2 id, 3 kind, 4 source, 5 state, 6 reverses, 7 ledger accounts, 8 currencies, 9 amounts. */
export const INSERT_TRANSACTION = `
INSERT INTO payments.ledger_transactions
  (account, id, kind, source, state, reverses, ledger_accounts, currencies, amounts)
VALUES ($1, $2, $3, $4, $5, $6, $7::text[], $8::text[], $9::bigint[])`

/**
 * The mirror of a transaction, whole or, where it has two lines, in part. No row: there is no such transaction, or it is
 * smaller. Parameters: 1 account, 2 id, 3 kind, 4 source, 5-6 kind and source of what is reversed, 7 amount or NULL for all.
 */
export const INSERT_REVERSAL = `
INSERT INTO payments.ledger_transactions
  (account, id, kind, source, state, reverses, ledger_accounts, currencies, amounts)
SELECT account, $2, $3, $4, state, id, ledger_accounts, currencies,
  (SELECT array_agg(-sign(amount)::bigint * coalesce($7::bigint, abs(amount)) ORDER BY line)
   FROM unnest(amounts) WITH ORDINALITY AS lines (amount, line))
FROM payments.ledger_transactions
WHERE account = $1 AND kind = $5 AND source = $6
  AND ($7::bigint IS NULL OR (cardinality(amounts) = 2 AND $7::bigint BETWEEN 1 AND abs(amounts[1])))
RETURNING id`

/**
 * One row for each balance that was ever taken from. It is written, not only locked: a transaction whose snapshot is older
 * than the last debit would read a balance without it, and is told to start again (40001) instead.
 * Parameters: 1 account, 2 currency.
 */
export const LOCK_BALANCE = `
INSERT INTO payments.ledger_locks AS l (account, currency, taken) VALUES ($1, $2, 1)
ON CONFLICT (account, currency) DO UPDATE SET taken = l.taken + 1`

/** The newest checkpoint of a group, and what came after it. */
const CHECKPOINT_AND_SINCE = `
LEFT JOIN LATERAL (
  SELECT c.up_to, c.total FROM payments.ledger_checkpoints AS c
  WHERE c.account = g.account AND c.currency = g.currency AND c.state = g.state
  ORDER BY c.up_to DESC LIMIT 1
) AS checkpoint ON true
CROSS JOIN LATERAL (
  SELECT coalesce(sum(e.amount), 0) AS total, count(*) AS entries FROM payments.ledger_entries AS e
  WHERE e.account = g.account AND e.ledger_account = 'balance' AND e.currency = g.currency AND e.state = g.state
    AND e.seq > coalesce(checkpoint.up_to, 0)
) AS since`

/** What we owe is a credit, so the sign is turned. Parameters: 1 account, 2 currency. */
export const AVAILABLE = `
SELECT (-(coalesce(checkpoint.total, 0) + since.total))::text AS available
FROM (SELECT $1::text AS account, $2::text AS currency, 'posted'::text AS state) AS g ${CHECKPOINT_AND_SINCE}`

/**
 * Jumps from each currency and state to the next one in the index, rather than over all entries of the account.
 * Parameters: 1 account.
 */
export const BALANCES = `
WITH RECURSIVE g AS (
  (SELECT account, currency, state FROM payments.ledger_entries
   WHERE account = $1 AND ledger_account = 'balance' ORDER BY currency, state LIMIT 1)
  UNION ALL
  SELECT next.account, next.currency, next.state FROM g CROSS JOIN LATERAL (
    SELECT e.account, e.currency, e.state FROM payments.ledger_entries AS e
    WHERE e.account = $1 AND e.ledger_account = 'balance' AND (e.currency, e.state) > (g.currency, g.state)
    ORDER BY e.currency, e.state LIMIT 1
  ) AS next
)
SELECT g.currency,
  (-coalesce(sum(coalesce(checkpoint.total, 0) + since.total) FILTER (WHERE g.state = 'posted'), 0))::text AS available,
  (-coalesce(sum(coalesce(checkpoint.total, 0) + since.total) FILTER (WHERE g.state = 'pending'), 0))::text AS pending
FROM g ${CHECKPOINT_AND_SINCE}
GROUP BY g.currency ORDER BY g.currency`

/** The last number that was given to an entry; 0 before the first. */
export const LAST_SEQ = `
SELECT (CASE WHEN is_called THEN last_value ELSE 0 END)::text AS seq FROM payments.ledger_entries_seq_seq`

/** Everybody who may have been given a number and has not ended. The lock on the table comes before the number. */
export const OPEN_WRITERS = `
SELECT DISTINCT virtualtransaction AS writer FROM pg_catalog.pg_locks
WHERE locktype = 'relation' AND relation = 'payments.ledger_entries'::regclass AND granted
  AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
  AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')`

/**
 * One page of groups behind the given one. Parameters: 1 up to, 2 how many entries a checkpoint is worth,
 * 3-6 the last group of the page before, 7 groups on a page.
 */
export const INSERT_CHECKPOINTS = `
WITH RECURSIVE groups AS (
  SELECT $3::text COLLATE "C" AS account, $4::text COLLATE "C" AS ledger_account, $5::text COLLATE "C" AS currency,
    $6::text COLLATE "C" AS state, 0 AS number
  UNION ALL
  SELECT next.account, next.ledger_account, next.currency, next.state, groups.number + 1
  FROM groups CROSS JOIN LATERAL (
    SELECT e.account, e.ledger_account, e.currency, e.state FROM payments.ledger_entries AS e
    WHERE (e.account, e.ledger_account, e.currency, e.state)
      > (groups.account, groups.ledger_account, groups.currency, groups.state)
    ORDER BY e.account, e.ledger_account, e.currency, e.state LIMIT 1
  ) AS next
  WHERE groups.number < $7::int
), inserted AS (
  INSERT INTO payments.ledger_checkpoints (account, currency, state, up_to, total)
  SELECT g.account, g.currency, g.state, $1::bigint, coalesce(checkpoint.total, 0) + since.total
  FROM groups AS g
  LEFT JOIN LATERAL (
    SELECT c.up_to, c.total FROM payments.ledger_checkpoints AS c
    WHERE c.account = g.account AND c.currency = g.currency AND c.state = g.state
    ORDER BY c.up_to DESC LIMIT 1
  ) AS checkpoint ON true
  CROSS JOIN LATERAL (
    SELECT sum(e.amount) AS total, count(*) AS entries FROM payments.ledger_entries AS e
    WHERE e.account = g.account AND e.ledger_account = 'balance' AND e.currency = g.currency AND e.state = g.state
      AND e.seq > coalesce(checkpoint.up_to, 0) AND e.seq <= $1::bigint
  ) AS since
  WHERE g.ledger_account = 'balance' AND g.number > 0 AND since.entries >= $2::bigint
  ON CONFLICT DO NOTHING
  RETURNING 1
)
SELECT (SELECT count(*)::int FROM inserted) AS inserted, account, ledger_account, currency, state, number
FROM groups ORDER BY number DESC LIMIT 1`
