-- requires: 1
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
