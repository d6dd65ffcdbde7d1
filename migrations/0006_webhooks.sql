-- requires: 1
-- Webhooks on their way out: who wants them, what was told, and what became of each delivery.
--
-- A message is written once and never changed, so that its bytes are the same on every attempt. A delivery is a row for each
-- message and endpoint: other than a destination of the outbox, an endpoint is a stranger's, may be away for days, and is
-- asked about by its owner, delivery by delivery.

-- state: `removed` stays until the last delivery to it is gone, and is shown to nobody.
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
