-- requires: 8
-- Calls that an operator has declared void, so that their step may be tried again under a new key.
--
-- A process that does not know this would make such a call under its first key again, beside one that was made under the new key:
-- it must not work with a schema that has it.

ALTER TABLE records
  -- The keys of its calls that are void, in the order of the decisions.
  ADD COLUMN void_calls text[] COLLATE "C";

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
