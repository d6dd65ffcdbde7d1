-- requires: 1
-- The keys that records are fingerprinted and sealed with, where their attempts can be traced, and the way to
-- those that are not finished.

-- Every key id that a process has started with as its current one. A process that lacks one of them has to
-- look whether a record still names it; without this list each start would read the whole table.
-- Holds nothing of any account: one row for each key that is in use.
CREATE TABLE key_ids (
  purpose text COLLATE "C" NOT NULL CHECK (purpose IN ('fingerprint', 'reply')),
  key_id  text COLLATE "C" NOT NULL,

  CONSTRAINT key_ids_pkey PRIMARY KEY (purpose, key_id)
);

-- What the records name that were there before the list. First, because it reads the whole table, and the
-- change of the table below keeps everybody else out until the end. Processes of the version before do not
-- add to the list; a key that only they use from now on is noted when one of this version starts with it.
INSERT INTO key_ids (purpose, key_id)
SELECT DISTINCT 'fingerprint', fingerprint_key_id FROM records WHERE state <> 'expired';

ALTER TABLE records
  -- The key that headers and body of the reply are sealed with; NULL: they are plain.
  ADD COLUMN reply_key_id text COLLATE "C",
  -- The span of the attempt, as W3C trace context writes it.
  ADD COLUMN trace text;

-- The way to records that are not finished, over all accounts: how many are stuck is asked every minute, and such
-- records are few among many. Its condition says "not finished" by a column that no other statement asks for: with
-- state IN (…) the planner, as long as the table was small, took this index for the completion of one record by
-- its key, and kept that plan. It makes the completion of a handler's record an update that is not in place (HOT);
-- measured with 64 callers, that and its own upkeep were within the noise: 0.68 and 0.70 of the unprotected handler
-- with it, 0.68 and 0.74 without. A fillfactor of 60 made no difference beside it, and is not set.
CREATE INDEX records_unfinished ON records (state, attempted_at) WHERE expires_at IS NULL;
