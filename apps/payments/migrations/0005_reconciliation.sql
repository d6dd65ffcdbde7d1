-- What comparing our books with the processor's has found. Kept, and only added to: who has seen a difference, and when, must not
-- depend on whether it was put right since.

-- A run is about all accounts of a processor and mode, so here the account is the processor's: 'stripe:live'.
CREATE TABLE payments.reconciliation_runs (
  account         text COLLATE "C" NOT NULL,
  id              text COLLATE "C" NOT NULL,
  from_at         timestamptz NOT NULL,
  to_at           timestamptz NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  matched         bigint NOT NULL,
  missing_here    bigint NOT NULL,
  missing_there   bigint NOT NULL,
  amount_mismatch bigint NOT NULL,
  aged_unknown    bigint NOT NULL,

  CONSTRAINT reconciliation_runs_pkey PRIMARY KEY (account, id),
  CONSTRAINT reconciliation_runs_time CHECK (from_at < to_at)
);

-- One row for each thing that differs, under the account that it belongs to, or the processor's if nobody here knows it. The
-- fingerprint says what differs and how: what is found again the next day is told once, what differs in another way is told anew.
CREATE TABLE payments.reconciliation_differences (
  account     text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  -- Of reconciliation_runs: the first run that found it.
  run         text COLLATE "C" NOT NULL,
  difference  text COLLATE "C" NOT NULL,
  kind        text COLLATE "C" NOT NULL,
  ours        jsonb,
  theirs      jsonb,
  created_at  timestamptz NOT NULL DEFAULT now(),

  CONSTRAINT reconciliation_differences_pkey PRIMARY KEY (account, fingerprint),
  CONSTRAINT reconciliation_differences_kind CHECK (kind IN ('payment', 'refund')),
  CONSTRAINT reconciliation_differences_sides CHECK (
    CASE difference
      WHEN 'missing_here' THEN ours IS NULL AND theirs IS NOT NULL
      WHEN 'missing_there' THEN ours IS NOT NULL AND theirs IS NULL
      WHEN 'amount_mismatch' THEN ours IS NOT NULL AND theirs IS NOT NULL
      WHEN 'aged_unknown' THEN ours IS NOT NULL
      ELSE false
    END
  )
);

CREATE FUNCTION payments.refuse_change_of_reconciliation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'what reconciliation has found is only added to' USING ERRCODE = 'PL001';
END $$;

CREATE TRIGGER reconciliation_runs_are_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON payments.reconciliation_runs
  FOR EACH STATEMENT EXECUTE FUNCTION payments.refuse_change_of_reconciliation();
CREATE TRIGGER reconciliation_differences_are_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON payments.reconciliation_differences
  FOR EACH STATEMENT EXECUTE FUNCTION payments.refuse_change_of_reconciliation();
