-- Money between the balances of two accounts. A transfer belongs to the account that sends it; the one that receives it hears
-- of it by an event, and has it in its ledger.
CREATE TABLE payments.transfers (
  account      text COLLATE "C" NOT NULL,
  id           text COLLATE "C" NOT NULL CHECK (id ~ '^trf_[0-9a-f]{32}$'),
  destination  text COLLATE "C" NOT NULL,
  amount       bigint NOT NULL CHECK (amount > 0),
  currency     text COLLATE "C" NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
  reference    text,
  metadata     jsonb NOT NULL CHECK (jsonb_typeof(metadata) = 'object'),
  -- processing: it has left, and has not been settled.
  status       text COLLATE "C" NOT NULL CHECK (status IN ('processing', 'succeeded', 'failed')),
  -- Why it came back.
  failure_code text COLLATE "C",
  created_at   timestamptz NOT NULL DEFAULT now(),
  ended_at     timestamptz,

  CONSTRAINT transfers_pkey PRIMARY KEY (account, id),
  CONSTRAINT transfers_elsewhere CHECK (destination <> account),
  -- Test money never becomes live money.
  CONSTRAINT transfers_one_mode CHECK (split_part(destination, ':', 2) = split_part(account, ':', 2)),
  CONSTRAINT transfers_ended CHECK ((status = 'processing') = (ended_at IS NULL)),
  CONSTRAINT transfers_failed CHECK ((status = 'failed') = (failure_code IS NOT NULL))
);

CREATE INDEX transfers_reference ON payments.transfers (account, reference, id) WHERE reference IS NOT NULL;
