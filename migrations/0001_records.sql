-- requires: 1
-- The records and the history of their attempts. Account leads every key, so that a cluster can be
-- distributed by it. Key columns compare by byte ("C"): cheaper than a locale, and exactly what a key means.

CREATE TABLE records (
  account            text COLLATE "C" NOT NULL,
  operation          text COLLATE "C" NOT NULL,
  key                text COLLATE "C" NOT NULL,
  state              text COLLATE "C" NOT NULL,
  -- Rises by one whenever ownership is taken; stands in the WHERE of every later write.
  fence              bigint NOT NULL,
  -- The present (or last) attempt. Random, and written in the attempt's own transaction: after a COMMIT
  -- whose answer was lost, finding it here or in attempts is the proof that the transaction committed.
  attempt_id         uuid NOT NULL,
  owner              text NOT NULL,
  attempted_at       timestamptz NOT NULL,
  fingerprint        bytea NOT NULL,
  fingerprint_key_id text COLLATE "C" NOT NULL,
  created_at         timestamptz NOT NULL,
  changed_at         timestamptz NOT NULL,
  lease_until        timestamptz,
  expires_at         timestamptz,
  reply_status       smallint,
  reply_headers      text,
  -- NULL in a completed record: the reply was too large to be kept.
  reply_body         bytea,
  reply_schema       smallint,
  error_code         text,
  error_message      text,

  CONSTRAINT records_pkey PRIMARY KEY (account, operation, key),
  CONSTRAINT records_names CHECK (account <> '' AND operation <> '' AND key <> ''),
  CONSTRAINT records_state CHECK (
    state IN ('in_progress', 'completed', 'retryable', 'unknown', 'parked', 'expired')
  ),
  CONSTRAINT records_fence CHECK (fence >= 1),
  CONSTRAINT records_fingerprint CHECK (octet_length(fingerprint) = 32),
  CONSTRAINT records_lease CHECK ((state = 'in_progress') = (lease_until IS NOT NULL)),
  CONSTRAINT records_retention CHECK (
    (state IN ('completed', 'retryable', 'expired')) = (expires_at IS NOT NULL)
  ),
  CONSTRAINT records_reply CHECK (
    CASE WHEN state = 'completed'
      THEN reply_status IS NOT NULL AND reply_headers IS NOT NULL AND reply_schema IS NOT NULL
      ELSE reply_status IS NULL AND reply_headers IS NULL AND reply_schema IS NULL AND reply_body IS NULL
    END
  ),
  CONSTRAINT records_error CHECK (
    (state IN ('retryable', 'unknown', 'parked')) = (error_code IS NOT NULL)
  )
);

-- Attempts that were superseded by a later one. The newest attempt is in the record itself, so the common
-- case, one attempt that succeeds, writes one row.
CREATE TABLE attempts (
  account       text COLLATE "C" NOT NULL,
  operation     text COLLATE "C" NOT NULL,
  key           text COLLATE "C" NOT NULL,
  fence         bigint NOT NULL,
  attempt_id    uuid NOT NULL,
  owner         text NOT NULL,
  started_at    timestamptz NOT NULL,
  ended_at      timestamptz NOT NULL,
  outcome       text COLLATE "C" NOT NULL,
  error_code    text,
  error_message text,

  CONSTRAINT attempts_pkey PRIMARY KEY (account, operation, key, fence),
  CONSTRAINT attempts_record FOREIGN KEY (account, operation, key) REFERENCES records ON DELETE CASCADE,
  CONSTRAINT attempts_outcome CHECK (
    outcome IN ('abandoned', 'retryable', 'unknown', 'parked', 'expired')
  )
);
