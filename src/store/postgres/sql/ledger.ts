/** The ledger of migrations, in the schema that is the `search_path`. */
export const CREATE_LEDGER = `CREATE TABLE IF NOT EXISTS migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    requires   integer NOT NULL DEFAULT 1,
    applied_at timestamptz NOT NULL DEFAULT now()
  )`

/** The payment service kept a ledger without it at first. */
export const COMPLETE_LEDGER =
  'ALTER TABLE migrations ADD COLUMN IF NOT EXISTS requires integer NOT NULL DEFAULT 1'

/** Parameters: 1 version, 2 name, 3 checksum, 4 requires. */
export const INSERT_LEDGER =
  'INSERT INTO migrations (version, name, checksum, requires) VALUES ($1, $2, $3, $4)'

export const FIND_SCHEMA = 'SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1'
