import { ageOf, interval } from './columns.ts'

/**
 * Unfinished records of all accounts whose last attempt began long ago, by state. The states stand in the text,
 * as in the index `records_unfinished`: only then does the planner see that it fits. now() and not
 * clock_timestamp(), which could not bound a scan of the index. Parameter: 1 age in ms.
 */
export const countStuck = (schema: string) => `
SELECT state, count(*), ${ageOf('min(attempted_at)')}
FROM ${schema}.records
WHERE state IN ('in_progress', 'unknown', 'parked') AND attempted_at <= now() - ${interval('$1')}
GROUP BY state`
