-- Payments and what is done with them. `account` is an account in one mode, such as acct_1:test.

CREATE TABLE payments.payments (
  account         text NOT NULL,
  id              text NOT NULL,
  status          text NOT NULL DEFAULT 'processing' CHECK (status IN
    ('processing', 'unknown', 'requires_capture', 'partially_captured', 'succeeded', 'failed', 'canceled', 'expired')),
  amount          bigint NOT NULL CHECK (amount > 0),
  currency        text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
  capture_method  text NOT NULL CHECK (capture_method IN ('automatic', 'manual')),
  payment_method  text NOT NULL,
  payer           text,
  reference       text,
  metadata        jsonb NOT NULL DEFAULT '{}',
  -- The key of the request that made it: where to ask what became of one that nobody has settled.
  idempotency_key text NOT NULL,
  gateway         text NOT NULL,
  gateway_id      text,
  -- What is taken, and what captures that are under way may still take.
  captured        bigint NOT NULL DEFAULT 0 CHECK (captured >= 0),
  capturing       bigint NOT NULL DEFAULT 0 CHECK (capturing >= 0),
  refunded        bigint NOT NULL DEFAULT 0 CHECK (refunded >= 0),
  refunding       bigint NOT NULL DEFAULT 0 CHECK (refunding >= 0),
  -- What the ledger still has as pending.
  held            bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
  -- Operation and key of who is letting go of the rest: meanwhile no capture may begin.
  closing         text,
  capture_before  timestamptz,
  decline         jsonb,
  duplicate_of    text,
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account, id),
  CHECK (captured + capturing <= amount),
  CHECK (refunded + refunding <= captured),
  CHECK (held <= amount),
  CHECK (CASE status
    WHEN 'succeeded' THEN captured > 0
    WHEN 'partially_captured' THEN captured > 0 AND captured < amount
    ELSE captured = 0
  END),
  CHECK (status IN ('requires_capture', 'partially_captured') OR (held = 0 AND closing IS NULL))
);

CREATE INDEX payments_by_status ON payments.payments (account, status, id);
CREATE INDEX payments_by_reference ON payments.payments (account, reference, id) WHERE reference IS NOT NULL;
CREATE INDEX payments_by_metadata ON payments.payments USING gin (metadata jsonb_path_ops) WHERE metadata <> '{}';
-- For workers, over all accounts.
CREATE INDEX payments_held_until ON payments.payments (capture_before)
  WHERE status IN ('requires_capture', 'partially_captured');
CREATE INDEX payments_unsettled ON payments.payments (created_at) WHERE status IN ('processing', 'unknown');

-- The machine that docs/payments.md draws: whatever the code thinks, a payment goes along these lines only.
CREATE FUNCTION payments.check_payment_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.status = ANY (CASE OLD.status
    WHEN 'processing' THEN ARRAY['unknown', 'requires_capture', 'succeeded', 'failed']
    WHEN 'unknown' THEN ARRAY['requires_capture', 'succeeded', 'failed']
    WHEN 'requires_capture' THEN ARRAY['partially_captured', 'succeeded', 'canceled', 'expired']
    WHEN 'partially_captured' THEN ARRAY['succeeded']
    ELSE ARRAY[]::text[]
  END) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'A payment does not go from % to %.', OLD.status, NEW.status USING ERRCODE = 'check_violation';
END
$$;
CREATE TRIGGER check_move BEFORE UPDATE OF status ON payments.payments FOR EACH ROW
  WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION payments.check_payment_move();

-- What was tried at a processor for a payment.
CREATE TABLE payments.attempts (
  account    text NOT NULL,
  payment    text NOT NULL,
  number     smallint NOT NULL CHECK (number > 0),
  gateway    text NOT NULL,
  gateway_id text,
  status     text NOT NULL DEFAULT 'processing' CHECK (status IN ('processing', 'authorized', 'captured', 'declined')),
  decline    jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  ended_at   timestamptz,
  PRIMARY KEY (account, payment, number),
  FOREIGN KEY (account, payment) REFERENCES payments.payments (account, id),
  CHECK ((status = 'processing') = (ended_at IS NULL)),
  CHECK ((status = 'declined') = (decline IS NOT NULL))
);

CREATE TABLE payments.captures (
  account    text NOT NULL,
  payment    text NOT NULL,
  id         text NOT NULL,
  amount     bigint NOT NULL CHECK (amount > 0),
  final      boolean NOT NULL,
  status     text NOT NULL DEFAULT 'processing' CHECK (status IN ('processing', 'succeeded', 'failed')),
  -- The key of the request: where to ask what became of one that nobody has settled.
  idempotency_key text NOT NULL,
  decline    jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account, payment, id),
  FOREIGN KEY (account, payment) REFERENCES payments.payments (account, id)
);

CREATE TABLE payments.refunds (
  account    text NOT NULL,
  payment    text NOT NULL,
  id         text NOT NULL,
  amount     bigint NOT NULL CHECK (amount > 0),
  reason     text,
  metadata   jsonb NOT NULL DEFAULT '{}',
  status     text NOT NULL DEFAULT 'processing' CHECK (status IN ('processing', 'succeeded', 'failed')),
  idempotency_key text NOT NULL,
  gateway_id text,
  decline    jsonb,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account, payment, id),
  FOREIGN KEY (account, payment) REFERENCES payments.payments (account, id)
);

CREATE INDEX captures_unsettled ON payments.captures (created_at) WHERE status = 'processing';
CREATE INDEX refunds_unsettled ON payments.refunds (created_at) WHERE status = 'processing';
CREATE INDEX payments_closing ON payments.payments (updated_at) WHERE closing IS NOT NULL;
