export const INSERT_ACCOUNT = `
INSERT INTO payments.accounts (account, name)
VALUES ($1 || ':test', $2), ($1 || ':live', $2)
ON CONFLICT (account) DO NOTHING
RETURNING account, name, duplicates, created_at`

export const FIND_ACCOUNT = `
SELECT account, name, duplicates, created_at FROM payments.accounts WHERE account = $1`

/** The newest first; each account once, by its row of test mode. 1 before this id, 2 how many. */
export const LIST_ACCOUNTS = `
SELECT account, name, duplicates, created_at FROM payments.accounts
WHERE right(account, 5) = ':test' AND ($1::text IS NULL OR account < $1 || ':test')
ORDER BY account DESC LIMIT $2`

/** Both modes of an account. 1 id, 2 name or NULL, 3 duplicates or NULL. */
export const UPDATE_ACCOUNT = `
UPDATE payments.accounts SET name = coalesce($2, name), duplicates = coalesce($3, duplicates)
WHERE account IN ($1 || ':test', $1 || ':live')
RETURNING account, name, duplicates, created_at`

export const INSERT_KEY = `
INSERT INTO payments.api_keys (account, id, secret_hash, last4)
SELECT account, $2, $3, $4 FROM payments.accounts WHERE account = $1
RETURNING created_at`

/** A stable key that is made at every start. */
export const INSERT_KNOWN_KEY = `
INSERT INTO payments.api_keys (account, id, secret_hash, last4)
VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING`

/** One that is revoked already keeps the time at which that was done. */
export const REVOKE_KEY = `
UPDATE payments.api_keys SET revoked_at = COALESCE(revoked_at, now())
WHERE account = $1 AND id = $2
RETURNING id, last4, created_at, revoked_at`

export const LIST_KEYS = `
SELECT account, id, last4, created_at, revoked_at FROM payments.api_keys
WHERE account = ANY ($1::text[]) ORDER BY id DESC LIMIT $2`

/** All keys of a tick at once. */
export const FIND_KEYS = `
SELECT k.account, k.id, k.secret_hash
FROM unnest($1::text[], $2::bytea[]) AS asked (account, secret_hash)
JOIN payments.api_keys k ON k.account = asked.account AND k.secret_hash = asked.secret_hash
WHERE k.revoked_at IS NULL`
