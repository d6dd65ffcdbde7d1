/** What the program is told of the pooler between it and its database; see `environment` of a fresh database. */
export const pooler = process.env.POOLER === 'transaction' ? 'transaction' : 'none'
