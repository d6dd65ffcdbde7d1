/** Of all processors. Ids are made from the time, so the newest run has the greatest. */
export const LIST_RUNS = `
SELECT account AS books, id, from_at, to_at, created_at,
       matched::int, missing_here::int, missing_there::int, amount_mismatch::int, aged_unknown::int
FROM payments.reconciliation_runs
WHERE $1::text IS NULL OR id < $1
ORDER BY id DESC
LIMIT $2`
