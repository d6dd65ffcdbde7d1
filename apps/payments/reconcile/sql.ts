/** Parameters: 1 account, 2 id, 3-4 from and to, 5-9 counts. */
export const INSERT_RUN = `
INSERT INTO payments.reconciliation_runs
  (account, id, from_at, to_at, matched, missing_here, missing_there, amount_mismatch, aged_unknown)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

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
