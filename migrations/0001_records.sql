-- requires: 1
-- The records and the history of their attempts. Account leads every key, so that a cluster can be
-- distributed by it. Key columns compare by byte ("C"): cheaper than a locale, and exactly what a key means.

-- What one column may hold is said by domains, what the columns of a state hold together by one function.
-- PostgreSQL reads the text of every CHECK of a table again for each statement that inserts. Measured for one
-- insert on one connection, round trip included: no checks 68 us; eight plain CHECKs 120 us; one CHECK with a
-- CASE over all states 108 us; the function below 83 us. The constraints of domains are kept ready.
CREATE DOMAIN name_text AS text COLLATE "C" CHECK (VALUE <> '');
CREATE DOMAIN record_state AS text COLLATE "C" CHECK (
  VALUE IN ('in_progress', 'completed', 'retryable', 'unknown', 'parked', 'expired')
);
CREATE DOMAIN attempt_outcome AS text COLLATE "C" CHECK (
  VALUE IN ('abandoned', 'retryable', 'unknown', 'parked', 'expired')
);
CREATE DOMAIN fence_number AS bigint CHECK (VALUE >= 1);
CREATE DOMAIN hmac_sha256 AS bytea CHECK (octet_length(VALUE) = 32);

-- Which columns a state has. The same as the union OnceRecord in the code.
CREATE FUNCTION record_is_sound(
  state text, lease_until timestamptz, expires_at timestamptz, reply_status smallint, error_code text
) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
  RETURN (state = 'in_progress') = (lease_until IS NOT NULL)
     AND (state IN ('completed', 'retryable', 'expired')) = (expires_at IS NOT NULL)
     AND (state = 'completed') = (reply_status IS NOT NULL)
     AND (state IN ('retryable', 'unknown', 'parked')) = (error_code IS NOT NULL);
END $$;

CREATE TABLE records (
  account            name_text NOT NULL,
  operation          name_text NOT NULL,
  key                name_text NOT NULL,
  state              record_state NOT NULL,
  -- Rises by one whenever ownership is taken; stands in the WHERE of every later write.
  fence              fence_number NOT NULL,
  -- The present (or last) attempt. Random, and written in the attempt's own transaction: after a COMMIT
  -- whose answer was lost, finding it here or in attempts is the proof that the transaction committed.
  attempt_id         uuid NOT NULL,
  owner              text NOT NULL,
  attempted_at       timestamptz NOT NULL,
  fingerprint        hmac_sha256 NOT NULL,
  fingerprint_key_id name_text NOT NULL,
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
  CONSTRAINT records_sound CHECK (record_is_sound(state, lease_until, expires_at, reply_status, error_code))
);

-- Attempts that were superseded by a later one. The newest attempt is in the record itself, so the common
-- case, one attempt that succeeds, writes one row.
CREATE TABLE attempts (
  account       name_text NOT NULL,
  operation     name_text NOT NULL,
  key           name_text NOT NULL,
  fence         fence_number NOT NULL,
  attempt_id    uuid NOT NULL,
  owner         text NOT NULL,
  started_at    timestamptz NOT NULL,
  ended_at      timestamptz NOT NULL,
  outcome       attempt_outcome NOT NULL,
  error_code    text,
  error_message text,

  CONSTRAINT attempts_pkey PRIMARY KEY (account, operation, key, fence),
  CONSTRAINT attempts_record FOREIGN KEY (account, operation, key) REFERENCES records ON DELETE CASCADE
);
