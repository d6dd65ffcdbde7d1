-- requires: 1
-- Calls that an operator has declared void, so that their step may be tried again under a new key.
--
-- A process of a version before this one would make such a call under its first key again, beside one that was made under the new
-- key. It may go on beside newer processes all the same: the database lets it take over no record that has void calls.

ALTER TABLE records
  -- The keys of its calls that are void, in the order of the decisions.
  ADD COLUMN void_calls text[] COLLATE "C",
  -- The attempt that took the record over. A version that knows neither void calls nor kinds leaves it as it was: where it is not
  -- attempt_id, such a version took the record, and kind is that of an attempt before. NULL in a record that was never taken over.
  ADD COLUMN taken_by uuid;

-- The same as before, and who may own a record with void calls. It raises, because an earlier version takes 55P03 (lock not
-- available) for a record that another owner holds: its workers leave the record alone, and its clients are told to come back.
-- A plain violation would be an error without a name to it. Three columns more were within the noise of the measurement that
-- is told in 0001, on a busy machine.
CREATE FUNCTION record_is_sound(
  state text, lease_until timestamptz, expires_at timestamptz, reply_status smallint, error_code text,
  kind "char", void_calls text[], taken_by uuid, attempt_id uuid
) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
  IF void_calls IS NOT NULL AND state = 'in_progress' AND taken_by IS DISTINCT FROM attempt_id THEN
    RAISE EXCEPTION 'the record has void calls, of which this version of onlyonce knows nothing' USING ERRCODE = '55P03';
  END IF;
  RETURN state IN ('in_progress', 'completed', 'retryable', 'unknown', 'parked', 'expired')
     AND (state = 'in_progress') = (lease_until IS NOT NULL)
     AND (state IN ('completed', 'retryable', 'expired')) = (expires_at IS NOT NULL)
     AND (state = 'completed') = (reply_status IS NOT NULL)
     AND (state IN ('retryable', 'unknown', 'parked')) = (error_code IS NOT NULL)
     AND (kind IS NULL OR kind IN ('t', 'o', 'h', 'r', 'c'));
END $$;

ALTER TABLE records
  DROP CONSTRAINT records_sound,
  ADD CONSTRAINT records_sound CHECK (
    record_is_sound(
      state, lease_until, expires_at, reply_status, error_code, kind, void_calls, taken_by, attempt_id
    )
  ) NOT VALID;

-- The same by the key of the call, for evidence that comes late. It outlives the record: a call that happened all the same has
-- to be noticed then too. One row for each decision, never removed.
CREATE TABLE void_calls (
  account   text COLLATE "C" NOT NULL,
  call_key  text COLLATE "C" NOT NULL,
  operation text COLLATE "C" NOT NULL,
  key       text COLLATE "C" NOT NULL,
  voided_at timestamptz NOT NULL,

  CONSTRAINT void_calls_pkey PRIMARY KEY (account, call_key)
);

-- Which call it was.
ALTER TABLE audit ADD COLUMN call_key text COLLATE "C";
ALTER TABLE audit
  DROP CONSTRAINT audit_action,
  ADD CONSTRAINT audit_action CHECK (action IN ('resolve', 'allow_retry', 'void_call', 'park', 'unpark')) NOT VALID;
