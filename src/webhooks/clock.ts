/**
 * The only file of this room that reads or writes a time of day. The age of a webhook that comes in is judged before any database is
 * asked, with an allowance for clocks that differ; what is scheduled goes by the database's clock.
 */
export const nowMs = (): number => Date.now()

/** As a webhook's body writes a time. */
export const isoOf = (atMs: number): string => new Date(atMs).toISOString()
