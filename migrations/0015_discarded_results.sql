-- requires: 1
-- An operator can discard the result of a call, and the audit keeps what was discarded.

-- Sealed where the library has keys for it. An earlier version leaves the columns alone. It cannot go on with a record whose progress says that a
-- result was discarded: it parks the record (operation_changed). Nothing that is there is checked again.
ALTER TABLE audit
  ADD COLUMN discarded        bytea,
  ADD COLUMN discarded_key_id text COLLATE "C",
  DROP CONSTRAINT audit_action,
  ADD CONSTRAINT audit_action CHECK (
    action IN ('resolve', 'give_up', 'allow_retry', 'void_call', 'park', 'unpark', 'add_evidence', 'discard_result')
  ) NOT VALID;
