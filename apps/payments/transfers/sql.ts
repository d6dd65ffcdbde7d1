/** Parameters: 1 account, 2 id, 3 destination, 4 amount, 5 currency, 6 reference, 7 metadata. */
export const INSERT_TRANSFER = `
INSERT INTO payments.transfers (account, id, destination, amount, currency, reference, metadata, status)
VALUES ($1, $2, $3, $4, $5, $6, $7, 'processing')
RETURNING *`

/** Only what is under way can end. Parameters: 1 account, 2 id, 3 status, 4 failure code or NULL. */
export const END_TRANSFER = `
UPDATE payments.transfers SET status = $3, failure_code = $4, ended_at = now()
WHERE account = $1 AND id = $2 AND status = 'processing'
RETURNING *`

export const FIND_TRANSFER = `
SELECT * FROM payments.transfers WHERE account = $1 AND id = $2`
