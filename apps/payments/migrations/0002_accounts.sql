-- Who may ask, and with what. An account stands here once for each mode, as `acct_…:test` and `acct_…:live`, so that whatever
-- belongs to it can point at it, and test and live are apart by construction.
CREATE TABLE payments.accounts (
  account    text NOT NULL CHECK (account ~ '^acct_[0-9a-f]{32}:(test|live)$'),
  name       text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 200),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account)
);

-- The secrets themselves are kept by nobody but their owners. They are 32 random bytes, so a plain hash is enough: there is
-- nothing to guess that a slow one would protect.
CREATE TABLE payments.api_keys (
  account     text NOT NULL,
  id          text NOT NULL CHECK (id ~ '^key_[0-9a-f]{32}$'),
  secret_hash bytea NOT NULL CHECK (octet_length(secret_hash) = 32),
  last4       text NOT NULL CHECK (char_length(last4) = 4),
  created_at  timestamptz NOT NULL DEFAULT now(),
  revoked_at  timestamptz,
  PRIMARY KEY (account, id),
  FOREIGN KEY (account) REFERENCES payments.accounts (account)
);

-- The one lookup of each request. Revoked keys leave it, so that a revoked key is found as little as one that never was.
CREATE UNIQUE INDEX api_keys_secret ON payments.api_keys (account, secret_hash) WHERE revoked_at IS NULL;
