-- requires: 1
-- The records and the history of their attempts. Account leads every key, so that a cluster can be
-- distributed by it. Key columns compare by byte ("C"): cheaper than a locale, and exactly what a key means.

-- Which columns a state has: the same as the union OnceRecord in the code.
--
-- One CHECK that calls one function on few columns, because PostgreSQL reads the text of every CHECK of a table
-- again for each statement that inserts. Measured for one insert on one connection, round trip included:
-- without any 68 us; this one 83 us; one CHECK with a CASE over all states 108 us; eight plain CHECKs 120 us;
-- domains for single columns beside the function 10 us more than the function alone.
CREATE FUNCTION record_is_sound(
  state text, lease_until timestamptz, expires_at timestamptz, reply_status smallint, error_code text
) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
  RETURN state IN ('in_progress', 'completed', 'retryable', 'unknown', 'parked', 'expired')
     AND (state = 'in_progress') = (lease_until IS NOT NULL)
     AND (state IN ('completed', 'retryable', 'expired')) = (expires_at IS NOT NULL)
     AND (state = 'completed') = (reply_status IS NOT NULL)
     AND (state IN ('retryable', 'unknown', 'parked')) = (error_code IS NOT NULL);
END $$;

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
  CONSTRAINT records_sound CHECK (
    record_is_sound(state, lease_until, expires_at, reply_status, error_code)
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
  CONSTRAINT attempts_outcome CHECK (outcome IN ('abandoned', 'retryable', 'unknown', 'parked', 'expired'))
);
