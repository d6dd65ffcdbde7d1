-- requires: 1
-- Which step of an operation is in doubt, for operators: waits_for is the key of its call, and a key does not name its step.

-- Since when: of the first doubt about the step, through all looks at it since. Both are kept while a worker looks, so they count only where
-- waits_for is a key of that step. An earlier version leaves the columns alone.
ALTER TABLE records
  ADD COLUMN waits_step  text COLLATE "C",
  ADD COLUMN waits_since timestamptz;
