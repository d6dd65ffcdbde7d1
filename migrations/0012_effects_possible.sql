-- requires: 1
-- What an operation has taken over from a handler that may run again.

-- True: an attempt before the operation may have had effects that are no steps. A handler that may run again leaves its kind in a retryable
-- record for that; an operation that takes the record writes its own kind, and its owner may vanish before it can give the earlier one back.
-- Cleared when the record begins a later life. An earlier version leaves the column alone.
ALTER TABLE records ADD COLUMN effects_possible boolean;
