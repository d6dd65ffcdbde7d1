-- requires: 1
-- Handlers that threw, and requests that operators gave up.

-- An operator's way to completed records whose reply is a failure, over all accounts: whether such a handler took effect is not known. Few
-- rows are ever in it, and a record gets there with the very write that completes it.
CREATE INDEX records_failed ON records (attempted_at) WHERE reply_status >= 500;

-- What is retryable is given up, and not resolved.
ALTER TABLE audit
  DROP CONSTRAINT audit_action,
  ADD CONSTRAINT audit_action CHECK (
    action IN ('resolve', 'give_up', 'allow_retry', 'void_call', 'park', 'unpark')
  ) NOT VALID;
