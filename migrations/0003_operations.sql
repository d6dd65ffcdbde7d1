-- requires: 1
-- Operations: what a record needs so that any process can go on where another one stopped.

ALTER TABLE records
  -- The version of the operation's code that began it. NULL: not an operation.
  ADD COLUMN version      text COLLATE "C",
  -- What the operation was asked to do, so that whoever resumes it knows.
  ADD COLUMN input        bytea,
  ADD COLUMN input_key_id text COLLATE "C",
  -- The results of the steps that are durable, in order.
  ADD COLUMN progress        bytea,
  ADD COLUMN progress_key_id text COLLATE "C",
  -- How many they are, the name of the last, and since when: how long the other side of the next call remembers its
  -- key is counted from here.
  ADD COLUMN points         smallint,
  ADD COLUMN recovery_point text COLLATE "C",
  ADD COLUMN point_at       timestamptz,
  -- After this, whoever finishes it in the background starts no new call. NULL: no deadline was given.
  ADD COLUMN deadline_at  timestamptz,
  -- The last moment at which an owner that is gone may have sent a call.
  ADD COLUMN sent_until   timestamptz,
  -- How long it is kept once it is finished; whoever finishes it may not know the caller's wish.
  ADD COLUMN retention_ms bigint,
  -- Of an unknown record: the key of the call whose outcome is in doubt, when somebody looks next, and how often they have.
  ADD COLUMN waits_for    text COLLATE "C",
  ADD COLUMN look_at      timestamptz,
  ADD COLUMN looks        smallint;

-- The reconciler's way to what is due, and a webhook's way to what waits for it. Few rows are ever in them.
CREATE INDEX records_due ON records (look_at) WHERE look_at IS NOT NULL;
CREATE INDEX records_waiting ON records (account, waits_for) WHERE waits_for IS NOT NULL;

-- What others have told about calls, often before their answer came. Read before the other side is asked.
CREATE TABLE evidence (
  account     text COLLATE "C" NOT NULL,
  call_key    text COLLATE "C" NOT NULL,
  result      bytea NOT NULL,
  key_id      text COLLATE "C",
  received_at timestamptz NOT NULL DEFAULT clock_timestamp(),

  CONSTRAINT evidence_pkey PRIMARY KEY (account, call_key)
);
-- The reaper's way to what is old.
CREATE INDEX evidence_received ON evidence (received_at);

-- Told by statements of an owner that is none any more, so that whatever was sent behind them fails too, COMMIT
-- included; or of one that did not find its record where it was put, and has to look for it by its key.
CREATE FUNCTION refuse_owner(code text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the record has another owner, or another place' USING ERRCODE = code;
END $$;
