-- requires: 1
-- Records that an operator has erased stand in the audit too. A tombstone is a completed record under an empty key id, which an earlier version
-- does not know: it answers 503 (fingerprint_key_unknown), and runs nothing.

-- Nothing that is there is checked again.
ALTER TABLE audit
  DROP CONSTRAINT audit_action,
  ADD CONSTRAINT audit_action CHECK (
    action IN (
      'resolve', 'give_up', 'allow_retry', 'void_call', 'park', 'unpark', 'add_evidence', 'discard_result', 'erase'
    )
  ) NOT VALID;
