-- requires: 1
-- Handlers whose owner vanished: what a record needs so that a worker knows what it may do about it.

ALTER TABLE records
  -- What protects the work: t transaction, o operation, h handler, r handler that may run again, c handler that `recover`
  -- can be asked about. One byte, written once with the claim, in no index: updates stay as they were. NULL: written by a
  -- version before this column; read as an operation where there is a version, and else as a handler that may not run again.
  ADD COLUMN kind "char",
  -- True: an operator or `recover` has decided in the owner's place. Until then the owner's late reply still counts.
  ADD COLUMN decided boolean;

-- The same as before, and the kinds. Another function of the same name, because the old one is in use until its constraint
-- is gone. NOT VALID: whatever is there has passed the old constraint, and is not read again.
CREATE FUNCTION record_is_sound(
  state text, lease_until timestamptz, expires_at timestamptz, reply_status smallint, error_code text,
  kind "char"
) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
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
    record_is_sound(state, lease_until, expires_at, reply_status, error_code, kind)
  ) NOT VALID;

-- Nobody was going to look at these: a worker parks them, or asks `recover`, at its next turn. Few rows, by records_unfinished.
UPDATE records SET look_at = clock_timestamp()
WHERE expires_at IS NULL AND state = 'unknown' AND version IS NULL AND look_at IS NULL;
