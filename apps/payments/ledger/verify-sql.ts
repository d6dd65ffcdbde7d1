/**
 * Each check is one query that gives a row for every thing that is wrong: account, id and what. They go over whole tables
 * in the database, which spills to disk what does not fit in memory.
 */
const REVERSED = `
SELECT t.account, t.id, t.reverses, e.ledger_account, e.currency, sum(e.amount) AS amount
FROM payments.ledger_transactions AS t
JOIN payments.ledger_entries AS e ON e.account = t.account AND e.transaction = t.id
WHERE t.reverses IS NOT NULL
GROUP BY t.account, t.id, t.reverses, e.ledger_account, e.currency`

const ORIGINALS = `
SELECT e.account, e.transaction AS id, e.ledger_account, e.currency, sum(e.amount) AS amount
FROM payments.ledger_entries AS e
WHERE EXISTS (
  SELECT FROM payments.ledger_transactions AS t WHERE t.account = e.account AND t.reverses = e.transaction
)
GROUP BY e.account, e.transaction, e.ledger_account, e.currency`

export const CHECKS = {
  not_zero: `
SELECT account, transaction AS id, format('comes to %s %s, not to zero', sum(amount), currency) AS what
FROM payments.ledger_entries GROUP BY account, transaction, currency HAVING sum(amount) <> 0`,

  entry_without_transaction: `
SELECT e.account, e.transaction AS id, format('line %s belongs to no transaction', e.line) AS what
FROM payments.ledger_entries AS e
LEFT JOIN payments.ledger_transactions AS t ON t.account = e.account AND t.id = e.transaction
WHERE t.id IS NULL`,

  entries_not_as_sealed: `
SELECT t.account, t.id,
  CASE WHEN e.transaction IS NULL THEN 'has no entries' ELSE 'its entries are not the lines that it was posted with' END AS what
FROM payments.ledger_transactions AS t
LEFT JOIN (
  SELECT account, transaction, array_agg(ledger_account ORDER BY line) AS ledger_accounts,
    array_agg(currency ORDER BY line) AS currencies, array_agg(amount ORDER BY line) AS amounts,
    min(state) AS state_min, max(state) AS state_max
  FROM payments.ledger_entries GROUP BY account, transaction
) AS e ON e.account = t.account AND e.transaction = t.id
WHERE e.transaction IS NULL OR e.ledger_accounts <> t.ledger_accounts OR e.currencies <> t.currencies
  OR e.amounts <> t.amounts OR e.state_min <> t.state OR e.state_max <> t.state`,

  malformed: `
SELECT account, transaction AS id, format('line %s is %s %s %s %s', line, state, ledger_account, amount, currency) AS what
FROM payments.ledger_entries
WHERE ledger_account NOT IN ('gateway', 'balance', 'transfers', 'fees') OR amount = 0
  OR state NOT IN ('pending', 'posted') OR currency !~ '^[A-Z]{3}$'`,

  posted_twice: `
SELECT account, min(id) AS id, format('%s of %s is there %s times', kind, source, count(*)) AS what
FROM payments.ledger_transactions GROUP BY account, kind, source HAVING count(*) > 1`,

  reversal_of_nothing: `
SELECT r.account, r.id,
  CASE WHEN o.id IS NULL THEN format('reverses %s, which does not exist', r.reverses)
    WHEN o.reverses IS NOT NULL THEN format('reverses %s, which is a reversal', o.id)
    ELSE format('is %s, and %s, which it reverses, is %s', r.state, o.id, o.state) END AS what
FROM payments.ledger_transactions AS r
LEFT JOIN payments.ledger_transactions AS o ON o.account = r.account AND o.id = r.reverses
WHERE r.reverses IS NOT NULL AND (o.id IS NULL OR o.reverses IS NOT NULL OR o.state <> r.state)`,

  reversal_not_mirrored: `
SELECT r.account, r.id, format('%s %s %s does not mirror %s', r.ledger_account, r.amount, r.currency, r.reverses) AS what
FROM (${REVERSED}) AS r
LEFT JOIN (${ORIGINALS}) AS o
  ON o.account = r.account AND o.id = r.reverses AND o.ledger_account = r.ledger_account AND o.currency = r.currency
WHERE o.id IS NULL OR sign(o.amount) <> -sign(r.amount)`,

  reversed_in_excess: `
SELECT o.account, o.id, format('%s %s %s was reversed by %s', o.ledger_account, o.amount, o.currency, r.amount) AS what
FROM (${ORIGINALS}) AS o
JOIN (
  SELECT account, reverses, ledger_account, currency, sum(amount) AS amount FROM (${REVERSED}) AS each
  GROUP BY account, reverses, ledger_account, currency
) AS r ON r.account = o.account AND r.reverses = o.id AND r.ledger_account = o.ledger_account AND r.currency = o.currency
WHERE abs(r.amount) > abs(o.amount)`,

  pending_negative: `
SELECT account, NULL AS id, format('holds %s %s', -sum(amount), currency) AS what
FROM payments.ledger_entries WHERE ledger_account = 'balance' AND state = 'pending'
GROUP BY account, currency HAVING sum(amount) > 0`,

  // Each checkpoint from the one before, so that every entry is read once.
  checkpoint_wrong: `
SELECT c.account, NULL AS id,
  format('%s %s: the checkpoint up to %s is off by %s', c.state, c.currency, c.up_to, c.total - c.before - sums.total) AS what
FROM (
  SELECT *, lag(up_to, 1, 0::bigint) OVER earlier AS behind, lag(total, 1, 0::numeric) OVER earlier AS before
  FROM payments.ledger_checkpoints WINDOW earlier AS (PARTITION BY account, currency, state ORDER BY up_to)
) AS c
CROSS JOIN LATERAL (
  SELECT coalesce(sum(e.amount), 0) AS total FROM payments.ledger_entries AS e
  WHERE e.account = c.account AND e.ledger_account = 'balance' AND e.currency = c.currency AND e.state = c.state
    AND e.seq > c.behind AND e.seq <= c.up_to
) AS sums
WHERE c.total - c.before <> sums.total`,

  // What comes next would be below a checkpoint, and not be counted.
  numbers_behind: `
SELECT NULL AS account, NULL AS id,
  format('the next entry is number %s or so, and %s was given before', s.last_value, used.largest) AS what
FROM payments.ledger_entries_seq_seq AS s
CROSS JOIN LATERAL (
  SELECT greatest((SELECT max(seq) FROM payments.ledger_entries), (SELECT max(up_to) FROM payments.ledger_checkpoints)) AS largest
) AS used
WHERE used.largest > s.last_value`,

  transfer_without_origin: `
SELECT min(t.account) AS account, t.source AS id, format('%s %s arrived that never left', sum(e.amount), e.currency) AS what
FROM payments.ledger_entries AS e
JOIN payments.ledger_transactions AS t ON t.account = e.account AND t.id = e.transaction
WHERE e.ledger_account = 'transfers'
GROUP BY t.source, e.currency HAVING sum(e.amount) > 0`,

  // tgtype: 58 is before update, delete and truncate; 6 before insert, 4 after insert; all of them of statements.
  unguarded: `
SELECT NULL AS account, guard.name AS id, format('the trigger on payments.%s is missing, disabled or another one', guard.on_table) AS what
FROM (VALUES
  ('ledger_transactions', 'ledger_transactions_are_kept', 'ledger_refuse_change', 58),
  ('ledger_entries', 'ledger_entries_are_kept', 'ledger_refuse_change', 58),
  ('ledger_checkpoints', 'ledger_checkpoints_are_kept', 'ledger_refuse_change', 58),
  ('ledger_entries', 'ledger_entries_come_with_transactions', 'ledger_refuse_entries', 6),
  ('ledger_transactions', 'ledger_writes_entries', 'ledger_write_entries', 4)
) AS guard (on_table, name, function, type)
WHERE NOT EXISTS (
  SELECT FROM pg_catalog.pg_trigger AS t
  JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid
  JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace AND n.oid = p.pronamespace
  WHERE n.nspname = 'payments' AND c.relname = guard.on_table AND t.tgname = guard.name
    AND t.tgenabled IN ('O', 'A') AND t.tgtype = guard.type AND t.tgqual IS NULL AND p.proname = guard.function
    AND p.prosrc LIKE CASE WHEN guard.type = 4 THEN '%INSERT INTO payments.ledger_entries%' ELSE '%RAISE EXCEPTION%' END
)
UNION ALL
SELECT NULL, wanted.name, 'the constraint is missing or was never checked'
FROM unnest(ARRAY[
  'ledger_transactions_pkey', 'ledger_transactions_once', 'ledger_transactions_reverses', 'ledger_transactions_not_itself',
  'ledger_transactions_words', 'ledger_transactions_state', 'ledger_transactions_lines', 'ledger_transactions_accounts',
  'ledger_transactions_zero', 'ledger_entries_pkey', 'ledger_entries_account', 'ledger_entries_currency', 'ledger_entries_state',
  'ledger_entries_amount', 'ledger_checkpoints_pkey', 'ledger_locks_pkey'
]) AS wanted (name)
WHERE NOT EXISTS (
  SELECT FROM pg_catalog.pg_constraint AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.connamespace
  WHERE n.nspname = 'payments' AND c.conname = wanted.name AND c.convalidated
)
UNION ALL
SELECT NULL, 'ledger_balances', 'the function that decides whether lines come to zero is another one'
WHERE NOT payments.ledger_balances('{EUR,EUR,USD,USD}', '{5,-5,7,-7}') OR payments.ledger_balances('{EUR,EUR}', '{5,-4}')
  OR payments.ledger_balances('{EUR,USD}', '{5,-5}')`,
} as const

/** Left one account and has not arrived at another: no error, but somebody should know for how long. */
export const IN_FLIGHT = `
SELECT min(t.account) AS account, t.source, e.currency, (-sum(e.amount))::text AS amount, min(t.created_at) AS since
FROM payments.ledger_entries AS e
JOIN payments.ledger_transactions AS t ON t.account = e.account AND t.id = e.transaction
WHERE e.ledger_account = 'transfers'
GROUP BY t.source, e.currency HAVING sum(e.amount) < 0
ORDER BY min(t.created_at), t.source`

export const COUNTS = `
SELECT (SELECT count(*)::text FROM payments.ledger_transactions) AS transactions,
  (SELECT count(*)::text FROM payments.ledger_entries) AS entries`
