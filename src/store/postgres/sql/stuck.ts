import { ageOf, interval } from './columns.ts'

/**
 * Unfinished records of all accounts whose last attempt began long ago, by state. Those have no expires_at, which is
 * also the condition of the index `records_unfinished`. now() and not clock_timestamp(), which could not bound a
 * scan of the index. Parameter: 1 age in ms.
 */
export const countStuck = (schema: string) => `
SELECT state, count(*), ${ageOf('min(attempted_at)')}
FROM ${schema}.records
WHERE expires_at IS NULL AND attempted_at <= now() - ${interval('$1')}
GROUP BY state`
