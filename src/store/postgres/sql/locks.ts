import { HELD_FOR, interval, isInside } from './columns.ts'

/**
 * A lock is one row, and three strengths of row locks keep its users apart:
 *
 * - a caller that asserts the fence inside a transaction takes FOR KEY SHARE, until that transaction ends;
 * - the next holder takes FOR UPDATE, and so waits for all of those;
 * - signs of life and releases are plain updates of columns that are no key: they wait for neither of the former, so a
 *   long transaction under a lock never keeps its own lock from being extended.
 */
const ONE = 'account = $1 AND resource = $2'
const HELD = `${ONE} AND token = $3::bigint AND holder = $4::uuid`

/** Parameters: 1-2 account and resource, 3 holder, 4 ttl in ms. */
export const insertLock = (schema: string) => `
INSERT INTO ${schema}.locks (account, resource, token, holder, held_until)
VALUES ($1, $2, 1, $3, clock_timestamp() + ${interval('$4')})
ON CONFLICT (account, resource) DO NOTHING
RETURNING token`

/** The next holder of a lock that has run out, or was released. Parameters: the same. */
export const takeLock = (schema: string) => `
WITH free AS (
  SELECT token FROM ${schema}.locks WHERE ${ONE} AND held_until <= clock_timestamp() FOR UPDATE
)
UPDATE ${schema}.locks AS l
SET token = l.token + 1, holder = $3::uuid, held_until = clock_timestamp() + ${interval('$4')}
FROM free
WHERE l.account = $1 AND l.resource = $2
RETURNING l.token`

export const lookLock = (schema: string) => `
SELECT token, holder, ${HELD_FOR} FROM ${schema}.locks WHERE ${ONE}`

/**
 * Never shorter than it was: of two signs of life that overtake each other, the longer counts, as it does for the holder.
 * Parameters: 1-2 account and resource, 3 token, 4 holder, 5 ttl in ms.
 */
export const extendLock = (schema: string) => `
UPDATE ${schema}.locks SET held_until = greatest(held_until, clock_timestamp() + ${interval('$5')})
WHERE ${HELD}
RETURNING token`

/** The row stays, and with it the token that the next holder counts on from. Parameters: 1-4 as above. */
export const releaseLock = (schema: string) => `
UPDATE ${schema}.locks SET holder = NULL, held_until = clock_timestamp()
WHERE ${HELD}
RETURNING token`

/**
 * Fails where the lock has another holder, and with it the transaction that it is asked in. Whether it has run out is not
 * asked: as long as no other holder got it, what is done under it is in order. Says `ended` outside of the transaction: there the lock on the
 * row would end with the statement, and protect nothing. Parameters: 1-4 as above, 5 transaction.
 */
export const assertLock = (schema: string) => `
WITH held AS (SELECT token FROM ${schema}.locks WHERE ${HELD} FOR KEY SHARE)
SELECT CASE WHEN NOT ${isInside('$5')} THEN 'ended'
  WHEN NOT EXISTS (SELECT FROM held) THEN ${schema}.refuse_former_holder()::text END AS said`
