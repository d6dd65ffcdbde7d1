-- requires: 1
-- A secret for services that were given none.

-- At most one row. Its id is random and not a constant: where the row is lost, records name an id that no process has, and a start says so. Other bytes
-- under the same id would tell every honest retry that its key is reused. Not in key_ids: those who only look may read that table.
CREATE TABLE made_secrets (
  key_id  text COLLATE "C" NOT NULL,
  bytes   bytea NOT NULL CHECK (octet_length(bytes) >= 32),
  made_at timestamptz NOT NULL DEFAULT clock_timestamp(),

  CONSTRAINT made_secrets_pkey PRIMARY KEY (key_id)
);

-- Of several processes that start at once, the first decides; the others wait for its commit.
CREATE UNIQUE INDEX made_secrets_one ON made_secrets ((true));
