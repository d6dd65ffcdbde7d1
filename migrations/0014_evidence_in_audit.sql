-- requires: 1
-- Evidence that an operator has told stands in the audit too.

-- Nothing that is there is checked again.
ALTER TABLE audit
  DROP CONSTRAINT audit_action,
  ADD CONSTRAINT audit_action CHECK (
    action IN ('resolve', 'give_up', 'allow_retry', 'void_call', 'park', 'unpark', 'add_evidence')
  ) NOT VALID;
