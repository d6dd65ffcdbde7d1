/** Written from migrations/ by `npm run migrations`. Change the files there, then run it again. */
export const SHIPPED: readonly { readonly name: string; readonly text: string }[] = [
  {
    name: '0001_records.sql',
    text: `-- requires: 1
-- The records and the history of their attempts. Account leads every key, so that a cluster can be
-- distributed by it. Key columns compare by byte ("C"): cheaper than a locale, and exactly what a key means.

-- Which columns a state has: the same as the union OnceRecord in the code.
--
-- One CHECK that calls one function on few columns, because PostgreSQL reads the text of every CHECK of a table
-- again for each statement that inserts. Measured for one insert on one connection, round trip included:
-- without any 68 us; this one 83 us; one CHECK with a CASE over all states 108 us; eight plain CHECKs 120 us;
-- domains for single columns beside the function 10 us more than the function alone.
CREATE FUNCTION record_is_sound(
  state text, lease_until timestamptz, expires_at timestamptz, reply_status smallint, error_code text
) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
  RETURN state IN ('in_progress', 'completed', 'retryable', 'unknown', 'parked', 'expired')
     AND (state = 'in_progress') = (lease_until IS NOT NULL)
     AND (state IN ('completed', 'retryable', 'expired')) = (expires_at IS NOT NULL)
     AND (state = 'completed') = (reply_status IS NOT NULL)
     AND (state IN ('retryable', 'unknown', 'parked')) = (error_code IS NOT NULL);
END $$;

CREATE TABLE records (
  account            text COLLATE "C" NOT NULL,
  operation          text COLLATE "C" NOT NULL,
  key                text COLLATE "C" NOT NULL,
  state              text COLLATE "C" NOT NULL,
  -- Rises by one whenever ownership is taken; stands in the WHERE of every later write.
  fence              bigint NOT NULL,
  -- The present (or last) attempt. Random, and written in the attempt's own transaction: after a COMMIT
  -- whose answer was lost, finding it here or in attempts is the proof that the transaction committed.
  attempt_id         uuid NOT NULL,
  owner              text NOT NULL,
  attempted_at       timestamptz NOT NULL,
  fingerprint        bytea NOT NULL,
  fingerprint_key_id text COLLATE "C" NOT NULL,
  created_at         timestamptz NOT NULL,
  changed_at         timestamptz NOT NULL,
  lease_until        timestamptz,
  expires_at         timestamptz,
  reply_status       smallint,
  reply_headers      text,
  -- NULL in a completed record: the reply was too large to be kept.
  reply_body         bytea,
  reply_schema       smallint,
  error_code         text,
  error_message      text,

  CONSTRAINT records_pkey PRIMARY KEY (account, operation, key),
  CONSTRAINT records_sound CHECK (
    record_is_sound(state, lease_until, expires_at, reply_status, error_code)
  )
);

-- Attempts that were superseded by a later one. The newest attempt is in the record itself, so the common
-- case, one attempt that succeeds, writes one row.
CREATE TABLE attempts (
  account       text COLLATE "C" NOT NULL,
  operation     text COLLATE "C" NOT NULL,
  key           text COLLATE "C" NOT NULL,
  fence         bigint NOT NULL,
  attempt_id    uuid NOT NULL,
  owner         text NOT NULL,
  started_at    timestamptz NOT NULL,
  ended_at      timestamptz NOT NULL,
  outcome       text COLLATE "C" NOT NULL,
  error_code    text,
  error_message text,

  CONSTRAINT attempts_pkey PRIMARY KEY (account, operation, key, fence),
  CONSTRAINT attempts_record FOREIGN KEY (account, operation, key) REFERENCES records ON DELETE CASCADE,
  CONSTRAINT attempts_outcome CHECK (outcome IN ('abandoned', 'retryable', 'unknown', 'parked', 'expired'))
);
`,
  },
  {
    name: '0002_keys_and_traces.sql',
    text: `-- requires: 1
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
`,
  },
  {
    name: '0003_operations.sql',
    text: `-- requires: 1
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
`,
  },
  {
    name: '0004_outbox.sql',
    text: `-- requires: 1
-- What leaves the database: events, jobs, and the list of messages that came in.
--
-- An event is written once, in the emitter's transaction. The relay then puts events into batches, a log for each
-- lane, and every destination has a cursor in every lane. So an event costs two inserts and one small delete, however
-- many destinations there are; a row for each event and destination (fan-out) would cost three writes more for each
-- destination. A destination that is away is a cursor that stands still.
--
-- Rows are taken by conditional updates of cursors and of jobs. Lanes, batches and cursors are the relay's own
-- books over all accounts; everything else is led by its account.

-- The counters that order events within an aggregate. Raised in the emitting transaction, whose row lock makes the
-- order of commits the order of numbers. Kept for ever, so that a number never comes twice.
CREATE TABLE aggregates (
  account text COLLATE "C" NOT NULL,
  name    text COLLATE "C" NOT NULL,
  last    bigint NOT NULL,

  CONSTRAINT aggregates_pkey PRIMARY KEY (account, name)
) WITH (fillfactor = 80);

-- Never changed: what becomes of an event is in other tables.
CREATE TABLE events (
  account    text COLLATE "C" NOT NULL,
  -- Shown with a prefix, evt_, which is not stored: every index entry and every batch is smaller by half.
  id         uuid NOT NULL,
  aggregate  text COLLATE "C",
  sequence   bigint,
  type       text COLLATE "C" NOT NULL,
  payload    text NOT NULL,
  emitted_at timestamptz NOT NULL DEFAULT clock_timestamp(),

  CONSTRAINT events_pkey PRIMARY KEY (account, id),
  CONSTRAINT events_order CHECK ((aggregate IS NULL) = (sequence IS NULL))
);

-- Events that are in no batch yet. A table of its own, small and soon empty again: marking the event itself cost the
-- relay 15 us an event, and left a dead row behind for each; this costs it 6.
CREATE TABLE fresh (
  -- Events of one aggregate share a lane.
  lane       smallint NOT NULL,
  -- Drawn after the counter was raised: within an aggregate it rises with the sequence. Between aggregates it says
  -- nothing but who is served first.
  position   bigint GENERATED ALWAYS AS IDENTITY,
  account    text COLLATE "C" NOT NULL,
  id         uuid NOT NULL,
  emitted_at timestamptz NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX fresh_order ON fresh (lane, position);

CREATE TABLE lanes (
  lane       smallint NOT NULL,
  last_batch bigint NOT NULL DEFAULT 0,

  CONSTRAINT lanes_pkey PRIMARY KEY (lane)
);
INSERT INTO lanes (lane) SELECT generate_series(0, 15);

CREATE TABLE batches (
  lane      smallint NOT NULL,
  number    bigint NOT NULL,
  size      integer NOT NULL,
  oldest_at timestamptz NOT NULL,
  made_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  accounts  text[] NOT NULL,
  ids       uuid[] NOT NULL,

  CONSTRAINT batches_pkey PRIMARY KEY (lane, number)
);

-- How far a destination has come in a lane: through this place in this batch. claim_id is that of the last relay that
-- took it, and stands in the WHERE of what it writes; it is taken while lease_until is in the future.
CREATE TABLE cursors (
  destination text COLLATE "C" NOT NULL,
  lane        smallint NOT NULL,
  batch       bigint NOT NULL,
  place       integer NOT NULL DEFAULT 0,
  claim_id    uuid,
  lease_until timestamptz,

  CONSTRAINT cursors_pkey PRIMARY KEY (destination, lane)
) WITH (fillfactor = 50);

-- Events that a cursor has passed without delivering them: one that failed, and those of its aggregate behind it.
-- try_at: of the first of an aggregate alone. parked_at: no more tries; those behind it go on.
CREATE TABLE held (
  account       text COLLATE "C" NOT NULL,
  destination   text COLLATE "C" NOT NULL,
  id            uuid NOT NULL,
  lane          smallint NOT NULL,
  batch         bigint NOT NULL,
  aggregate     text COLLATE "C",
  sequence      bigint,
  -- All tries, and those among them that count against the event.
  tries         integer NOT NULL,
  refusals      integer NOT NULL,
  try_at        timestamptz,
  parked_at     timestamptz,
  error_code    text,
  error_message text,

  CONSTRAINT held_pkey PRIMARY KEY (account, destination, id),
  CONSTRAINT held_parked CHECK (parked_at IS NULL OR try_at IS NULL)
);
CREATE INDEX held_due ON held (destination, lane, try_at) WHERE try_at IS NOT NULL;
CREATE INDEX held_aggregate ON held (account, destination, aggregate, sequence) WHERE parked_at IS NULL;
CREATE INDEX held_batch ON held (lane, batch);

-- run_at: from when on it is due; NULL: done or parked. Taking a job changes no column of an index, so that the update
-- stays HOT: those that are taken are few, and are passed over.
CREATE TABLE jobs (
  account       text COLLATE "C" NOT NULL,
  id            uuid NOT NULL,
  job           text COLLATE "C" NOT NULL,
  key           text COLLATE "C",
  payload       text NOT NULL,
  staged_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  run_at        timestamptz,
  attempts      integer NOT NULL DEFAULT 0,
  claim_id      uuid,
  lease_until   timestamptz,
  done_at       timestamptz,
  parked_at     timestamptz,
  error_code    text,
  error_message text,

  CONSTRAINT jobs_pkey PRIMARY KEY (account, id),
  CONSTRAINT jobs_state CHECK (num_nonnulls(run_at, done_at, parked_at) = 1)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
CREATE INDEX jobs_due ON jobs (job, run_at) WHERE run_at IS NOT NULL;
CREATE UNIQUE INDEX jobs_key ON jobs (account, job, key) WHERE key IS NOT NULL;
CREATE INDEX jobs_done ON jobs (done_at) WHERE done_at IS NOT NULL;

CREATE TABLE inbox (
  account    text COLLATE "C" NOT NULL,
  source     text COLLATE "C" NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  seen_at    timestamptz NOT NULL DEFAULT clock_timestamp(),

  CONSTRAINT inbox_pkey PRIMARY KEY (account, source, message_id)
);
CREATE INDEX inbox_seen ON inbox (seen_at);
`,
  },
  {
    name: '0005_locks_and_audit.sql',
    text: `-- requires: 1
-- Locks with fencing, what operators have decided, and the reaper's way to what it may remove.

-- One row for each resource that was ever locked. It is never deleted: a token that came again would let a late
-- writer in. So lock what is as lasting as an account or an order, not what is named anew for every request.
CREATE TABLE locks (
  account    text COLLATE "C" NOT NULL,
  resource   text COLLATE "C" NOT NULL,
  -- Rises by one with every holder, over releases, expiries and restarts.
  token      bigint NOT NULL,
  -- Random for every acquisition; NULL: it was released.
  holder     uuid,
  held_until timestamptz NOT NULL,

  CONSTRAINT locks_pkey PRIMARY KEY (account, resource)
);

-- Told inside the transaction of a holder that is none any more, so that it cannot commit, whoever swallows the error.
CREATE FUNCTION refuse_former_holder() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the lock has another holder' USING ERRCODE = 'OO002';
END $$;

-- What operators have decided about records. It outlives the record, so it has no foreign key.
CREATE TABLE audit (
  account    text COLLATE "C" NOT NULL,
  operation  text COLLATE "C" NOT NULL,
  key        text COLLATE "C" NOT NULL,
  seq        bigint NOT NULL,
  at         timestamptz NOT NULL,
  decided_by text NOT NULL,
  why        text NOT NULL,
  action     text COLLATE "C" NOT NULL,
  from_state text COLLATE "C" NOT NULL,
  to_state   text COLLATE "C" NOT NULL,
  fence      bigint NOT NULL,

  CONSTRAINT audit_pkey PRIMARY KEY (account, operation, key, seq),
  CONSTRAINT audit_action CHECK (action IN ('resolve', 'allow_retry', 'park', 'unpark'))
);

CREATE FUNCTION refuse_change_of_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit is only added to' USING ERRCODE = 'OO003';
END $$;

CREATE TRIGGER audit_is_added_to BEFORE UPDATE OR DELETE ON audit
  FOR EACH ROW EXECUTE FUNCTION refuse_change_of_audit();
CREATE TRIGGER audit_is_kept BEFORE TRUNCATE ON audit
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_audit();

-- The reaper's way to finished records, the oldest first; without those that have expired already, which would be in the
-- way for ever. It costs each finished record one entry, nearly always on the last page, because expiries rise. Measured
-- in one session, nine times 50,000 rows on a busy machine, the fastest of each: a finished record inserted in 10.8 us with
-- it and 9.3 us without, 517 and 451 bytes of WAL; the completion of a handler's record, which is not HOT anyway because of
-- records_unfinished, in 15.2 and 11.5 us, 540 and 474 bytes. With 64 callers in turns, 18 rounds, that was within the noise:
-- with it the rate of transactions was 0.94 and 0.99 of that without, that of handlers 1.06 and 0.98.
CREATE INDEX records_reapable ON records (expires_at) WHERE state IN ('completed', 'retryable');
`,
  },
  {
    name: '0006_webhooks.sql',
    text: `-- requires: 1
-- Webhooks on their way out: who wants them, what was told, and what became of each delivery.
--
-- A message is written once and never changed, so that its bytes are the same on every attempt. A delivery is a row for each
-- message and endpoint: other than a destination of the outbox, an endpoint is a stranger's, may be away for days, and is
-- asked about by its owner, delivery by delivery.

-- state: \`removed\` stays until the last delivery to it is gone, and is shown to nobody.
CREATE TABLE webhook_endpoints (
  account      text COLLATE "C" NOT NULL,
  -- Shown with a prefix, we_, which is not stored.
  id           uuid NOT NULL,
  url          text NOT NULL,
  -- NULL: all of them.
  types        text[],
  description  text,
  state        text COLLATE "C" NOT NULL DEFAULT 'enabled',
  -- Why it is disabled: somebody asked for it, or the endpoint said that it is gone.
  disabled_why text COLLATE "C",
  created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
  changed_at   timestamptz NOT NULL DEFAULT clock_timestamp(),

  CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (account, id),
  CONSTRAINT webhook_endpoints_state CHECK (state IN ('enabled', 'disabled', 'removed')),
  CONSTRAINT webhook_endpoints_why CHECK ((state = 'disabled') = (disabled_why IS NOT NULL)
    AND disabled_why IN ('asked', 'gone'))
);
CREATE INDEX webhook_endpoints_removed ON webhook_endpoints (changed_at) WHERE state = 'removed';

-- The current secret has no end; those that were rotated out sign beside it until theirs.
CREATE TABLE webhook_secrets (
  account    text COLLATE "C" NOT NULL,
  endpoint   uuid NOT NULL,
  id         uuid NOT NULL,
  secret     bytea NOT NULL,
  -- The key that it is sealed with; NULL: it is plain.
  key_id     text COLLATE "C",
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz,

  CONSTRAINT webhook_secrets_pkey PRIMARY KEY (account, endpoint, id),
  CONSTRAINT webhook_secrets_endpoint FOREIGN KEY (account, endpoint)
    REFERENCES webhook_endpoints (account, id) ON DELETE CASCADE
);
-- One secret is the current one, also when two rotate it at once.
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (account, endpoint) WHERE expires_at IS NULL;

CREATE TABLE webhook_messages (
  account    text COLLATE "C" NOT NULL,
  -- That of the event.
  id         uuid NOT NULL,
  type       text COLLATE "C" NOT NULL,
  -- The very text that is signed and sent.
  body       text NOT NULL,
  -- When the event was emitted.
  created_at timestamptz NOT NULL,

  CONSTRAINT webhook_messages_pkey PRIMARY KEY (account, id)
);
CREATE INDEX webhook_messages_order ON webhook_messages (account, created_at, id);
CREATE INDEX webhook_messages_old ON webhook_messages (created_at);

-- due_at: from when on it is tried; NULL: it has ended. Taking a delivery raises its fence, and changes no column of an index.
CREATE TABLE webhook_deliveries (
  account       text COLLATE "C" NOT NULL,
  endpoint      uuid NOT NULL,
  message       uuid NOT NULL,
  state         text COLLATE "C" NOT NULL DEFAULT 'pending',
  fence         bigint NOT NULL DEFAULT 0,
  -- Since it was last asked for: a replay begins anew.
  attempts      integer NOT NULL DEFAULT 0,
  due_at        timestamptz,
  lease_until   timestamptz,
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  ended_at      timestamptz,
  -- Of the last attempt.
  status        integer,
  error_code    text,
  error_message text,

  CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (account, endpoint, message),
  CONSTRAINT webhook_deliveries_message FOREIGN KEY (account, message)
    REFERENCES webhook_messages (account, id) ON DELETE CASCADE,
  CONSTRAINT webhook_deliveries_state CHECK (state IN ('pending', 'delivered', 'failed')),
  CONSTRAINT webhook_deliveries_due CHECK ((state = 'pending') = (due_at IS NOT NULL)
    AND (state = 'pending') = (ended_at IS NULL))
) WITH (fillfactor = 80);
-- For one endpoint at a time: so one with a long queue is in nobody's way.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (account, endpoint, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_of_message ON webhook_deliveries (account, message, endpoint);

-- Every attempt that was ended by whoever made it.
CREATE TABLE webhook_attempts (
  account       text COLLATE "C" NOT NULL,
  endpoint      uuid NOT NULL,
  message       uuid NOT NULL,
  fence         bigint NOT NULL,
  ended_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  duration_ms   integer NOT NULL,
  -- NULL: there was no answer.
  status        integer,
  error_code    text,
  error_message text,

  CONSTRAINT webhook_attempts_pkey PRIMARY KEY (account, endpoint, message, fence),
  CONSTRAINT webhook_attempts_delivery FOREIGN KEY (account, endpoint, message)
    REFERENCES webhook_deliveries (account, endpoint, message) ON DELETE CASCADE
);
`,
  },
  {
    name: '0007_handlers_in_doubt.sql',
    text: `-- requires: 1
-- Handlers whose owner vanished: what a record needs so that a worker knows what it may do about it.

ALTER TABLE records
  -- What protects the work: t transaction, o operation, h handler, r handler that may run again, c handler that \`recover\`
  -- can be asked about. One byte, written once with the claim, in no index: updates stay as they were. NULL: written by a
  -- version before this column; read as an operation where there is a version, and else as a handler that may not run again.
  ADD COLUMN kind "char",
  -- True: an operator or \`recover\` has decided in the owner's place. Until then the owner's late reply still counts.
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

-- Nobody was going to look at these: a worker parks them, or asks \`recover\`, at its next turn. Few rows, by records_unfinished.
UPDATE records SET look_at = clock_timestamp()
WHERE expires_at IS NULL AND state = 'unknown' AND version IS NULL AND look_at IS NULL;
`,
  },
  {
    name: '0008_void_calls.sql',
    text: `-- requires: 1
-- Calls that an operator has declared void, so that their step may be tried again under a new key.
--
-- A process of a version before this one would make such a call under its first key again, beside one that was made under the new
-- key. It may go on beside newer processes all the same: the database lets it take over no record that has void calls.

ALTER TABLE records
  -- The keys of its calls that are void, in the order of the decisions.
  ADD COLUMN void_calls text[] COLLATE "C",
  -- The attempt that took the record over. A version that knows neither void calls nor kinds leaves it as it was: where it is not
  -- attempt_id, such a version took the record, and kind is that of an attempt before. NULL in a record that was never taken over.
  ADD COLUMN taken_by uuid;

-- The same as before, and who may own a record with void calls. It raises, because an earlier version takes 55P03 (lock not
-- available) for a record that another owner holds: its workers leave the record alone, and its clients are told to come back.
-- A plain violation would be an error without a name to it. Three columns more were within the noise of the measurement that
-- is told in 0001, on a busy machine.
CREATE FUNCTION record_is_sound(
  state text, lease_until timestamptz, expires_at timestamptz, reply_status smallint, error_code text,
  kind "char", void_calls text[], taken_by uuid, attempt_id uuid
) RETURNS boolean IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
  IF void_calls IS NOT NULL AND state = 'in_progress' AND taken_by IS DISTINCT FROM attempt_id THEN
    RAISE EXCEPTION 'the record has void calls, of which this version of onlyonce knows nothing' USING ERRCODE = '55P03';
  END IF;
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
    record_is_sound(
      state, lease_until, expires_at, reply_status, error_code, kind, void_calls, taken_by, attempt_id
    )
  ) NOT VALID;

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
`,
  },
  {
    name: '0009_webhook_bounds.sql',
    text: `-- requires: 1
-- Lists of messages by type read what they show, and an account has one endpoint for a URL.

-- Without it a list of one type reads all messages of the account until it has found enough of that type.
CREATE INDEX webhook_messages_by_type ON webhook_messages (account, type, created_at, id);

-- Of several endpoints with one URL the newest stays: its secret was shown last.
UPDATE webhook_endpoints AS e SET state = 'removed', disabled_why = NULL, changed_at = clock_timestamp()
WHERE e.state <> 'removed' AND EXISTS (
  SELECT FROM webhook_endpoints AS o WHERE o.account = e.account AND o.url = e.url AND o.state <> 'removed'
    AND (o.created_at, o.id) > (e.created_at, e.id)
);
-- By a digest: a URL may be nearly as long as an entry of an index can be.
CREATE UNIQUE INDEX webhook_endpoints_url ON webhook_endpoints (account, md5(url)) WHERE state <> 'removed';
`,
  },
  {
    name: '0010_key_digests.sql',
    text: `-- requires: 1
-- Other bytes under the id of a key look like another request for each key. A digest of the bytes tells it when a process starts.

-- NULL: noted by a version that knew no digests. A process that starts with the key adds it.
ALTER TABLE key_ids ADD COLUMN digest text COLLATE "C";
`,
  },
  {
    name: '0011_failed_handlers.sql',
    text: `-- requires: 1
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
`,
  },
  {
    name: '0012_effects_possible.sql',
    text: `-- requires: 1
-- What an operation has taken over from a handler that may run again.

-- True: an attempt before the operation may have had effects that are no steps. A handler that may run again leaves its kind in a retryable
-- record for that; an operation that takes the record writes its own kind, and its owner may vanish before it can give the earlier one back.
-- Cleared when the record begins a later life. An earlier version leaves the column alone.
ALTER TABLE records ADD COLUMN effects_possible boolean;
`,
  },
  {
    name: '0013_step_in_doubt.sql',
    text: `-- requires: 1
-- Which step of an operation is in doubt, for operators: waits_for is the key of its call, and a key does not name its step.

-- Since when: of the first doubt about the step, through all looks at it since. Both are kept while a worker looks, so they count only where
-- waits_for is a key of that step. An earlier version leaves the columns alone.
ALTER TABLE records
  ADD COLUMN waits_step  text COLLATE "C",
  ADD COLUMN waits_since timestamptz;
`,
  },
  {
    name: '0014_evidence_in_audit.sql',
    text: `-- requires: 1
-- Evidence that an operator has told stands in the audit too.

-- Nothing that is there is checked again.
ALTER TABLE audit
  DROP CONSTRAINT audit_action,
  ADD CONSTRAINT audit_action CHECK (
    action IN ('resolve', 'give_up', 'allow_retry', 'void_call', 'park', 'unpark', 'add_evidence')
  ) NOT VALID;
`,
  },
  {
    name: '0015_discarded_results.sql',
    text: `-- requires: 1
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
`,
  },
  {
    name: '0016_erasures_in_audit.sql',
    text: `-- requires: 1
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
`,
  },
  {
    name: '0017_made_secrets.sql',
    text: `-- requires: 1
-- A secret for services that were given none.

-- At most one row. Its id is random and not a constant: where the row is lost, records name an id that no process has, and a start says so. Other bytes
-- under the same id would tell every honest retry that its key is reused. Not in key_ids: those who only look may read that table.
CREATE TABLE made_secrets (
  key_id  text COLLATE "C" NOT NULL,
  bytes   bytea NOT NULL CHECK (octet_length(bytes) >= 32),
  made_at timestamptz NOT NULL DEFAULT clock_timestamp(),

  CONSTRAINT made_secrets_pkey PRIMARY KEY (key_id)
);

-- Of several processes that start at once, the first decides; the others wait for its commit.
CREATE UNIQUE INDEX made_secrets_one ON made_secrets ((true));
`,
  },
]
