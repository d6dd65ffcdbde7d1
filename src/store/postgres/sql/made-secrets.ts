/** The secret that the database keeps for processes that were given none. */
export const readMadeSecret = (schema: string) => `
SELECT key_id, encode(bytes, 'hex') FROM ${schema}.made_secrets`

/** Parameters: 1 key id, 2 bytes in hexadecimal. */
export const insertMadeSecret = (schema: string) => `
INSERT INTO ${schema}.made_secrets (key_id, bytes) VALUES ($1, decode($2, 'hex')) ON CONFLICT DO NOTHING`
