-- Double entry, append-only. Debits are positive, credits negative, and the lines of one transaction come to zero in each
-- currency.
--
-- A transaction is one row that has its lines in it, sealed: so that they balance, are some, and stay what they are is said by
-- CHECKs, which need no trigger, no look at another row, and no wait for the commit. A trigger writes the same lines out as
-- entries, which are what is summed; nobody else writes entries. Checking entries at the commit instead was dropped: whoever
-- reads them back in a serializable transaction has locked that page of the index, or all of a small table, against
-- everybody else who posts. As it is, who posts only inserts.

-- In PL/pgSQL because that keeps its plan.
CREATE FUNCTION payments.ledger_balances(currencies text[], amounts bigint[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN NOT EXISTS (
    SELECT FROM unnest(currencies, amounts) AS line (currency, amount) GROUP BY currency HAVING sum(amount) <> 0
  );
END $$;

CREATE TABLE payments.ledger_transactions (
  account         text COLLATE "C" NOT NULL,
  id              text COLLATE "C" NOT NULL,
  -- What it is, such as 'capture', and what it is of. A step that is repeated cannot post twice.
  kind            text COLLATE "C" NOT NULL,
  source          text COLLATE "C" NOT NULL,
  state           text COLLATE "C" NOT NULL,
  -- The transaction that this one takes back, in whole or in part.
  reverses        text COLLATE "C",
  created_at      timestamptz NOT NULL DEFAULT now(),
  ledger_accounts text[] COLLATE "C" NOT NULL,
  currencies      text[] COLLATE "C" NOT NULL,
  amounts         bigint[] NOT NULL,

  CONSTRAINT ledger_transactions_pkey PRIMARY KEY (account, id),
  CONSTRAINT ledger_transactions_once UNIQUE (account, kind, source),
  CONSTRAINT ledger_transactions_reverses FOREIGN KEY (account, reverses)
    REFERENCES payments.ledger_transactions (account, id),
  CONSTRAINT ledger_transactions_not_itself CHECK (reverses <> id),
  CONSTRAINT ledger_transactions_words CHECK (kind ~ '^[a-z][a-z_]{0,63}$' AND length(source) BETWEEN 1 AND 255),
  CONSTRAINT ledger_transactions_state CHECK (state IN ('pending', 'posted')),
  CONSTRAINT ledger_transactions_lines CHECK (
    cardinality(amounts) BETWEEN 2 AND 100
    AND cardinality(currencies) = cardinality(amounts)
    AND cardinality(ledger_accounts) = cardinality(amounts)
    AND array_position(amounts, NULL) IS NULL AND array_position(currencies, NULL) IS NULL
    AND 0 <> ALL (amounts)
  ),
  CONSTRAINT ledger_transactions_accounts CHECK (ledger_accounts <@ ARRAY['gateway', 'balance', 'transfers', 'fees'] COLLATE "C"),
  CONSTRAINT ledger_transactions_zero CHECK (payments.ledger_balances(currencies, amounts))
);

CREATE TABLE payments.ledger_entries (
  account        text COLLATE "C" NOT NULL,
  transaction    text COLLATE "C" NOT NULL,
  line           smallint NOT NULL,
  ledger_account text COLLATE "C" NOT NULL,
  currency       text COLLATE "C" NOT NULL,
  amount         bigint NOT NULL,
  state          text COLLATE "C" NOT NULL,
  -- In about the order of commits. Only checkpoints depend on it.
  seq            bigint GENERATED ALWAYS AS IDENTITY,

  CONSTRAINT ledger_entries_pkey PRIMARY KEY (account, transaction, line),
  CONSTRAINT ledger_entries_account CHECK (ledger_account IN ('gateway', 'balance', 'transfers', 'fees')),
  CONSTRAINT ledger_entries_currency CHECK (currency ~ '^[A-Z]{3}$'),
  CONSTRAINT ledger_entries_state CHECK (state IN ('pending', 'posted')),
  CONSTRAINT ledger_entries_amount CHECK (amount <> 0)
);

-- Sums come from this index alone. No foreign key to the transaction: the check of one is a read, see above.
CREATE INDEX ledger_entries_sums ON payments.ledger_entries (account, ledger_account, currency, state, seq) INCLUDE (amount);

-- What the entries of 'balance' came to, up to a number below which no transaction can still be open.
CREATE TABLE payments.ledger_checkpoints (
  account    text COLLATE "C" NOT NULL,
  currency   text COLLATE "C" NOT NULL,
  state      text COLLATE "C" NOT NULL,
  up_to      bigint NOT NULL,
  total      numeric NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),

  CONSTRAINT ledger_checkpoints_pkey PRIMARY KEY (account, currency, state, up_to)
);

-- Who takes from a balance locks its row here. Who adds to one does not, so that payments never wait for each other.
CREATE TABLE payments.ledger_locks (
  account  text COLLATE "C" NOT NULL,
  currency text COLLATE "C" NOT NULL,
  taken    bigint NOT NULL,

  CONSTRAINT ledger_locks_pkey PRIMARY KEY (account, currency)
) WITH (fillfactor = 50);

CREATE FUNCTION payments.ledger_write_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO payments.ledger_entries (account, transaction, line, ledger_account, currency, amount, state)
  SELECT added.account, added.id, line.number, line.ledger_account, line.currency, line.amount, added.state
  FROM added,
    unnest(added.ledger_accounts, added.currencies, added.amounts) WITH ORDINALITY
      AS line (ledger_account, currency, amount, number);
  RETURN NULL;
END $$;

CREATE TRIGGER ledger_writes_entries AFTER INSERT ON payments.ledger_transactions
  REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION payments.ledger_write_entries();

CREATE FUNCTION payments.ledger_refuse_entries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF pg_trigger_depth() < 2 THEN
    RAISE EXCEPTION 'entries are written by the transaction they belong to, with it and never later' USING ERRCODE = 'PL002';
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER ledger_entries_come_with_transactions BEFORE INSERT ON payments.ledger_entries
  FOR EACH STATEMENT EXECUTE FUNCTION payments.ledger_refuse_entries();

-- Of statements, not of rows: also what would meet no row is a mistake that is better told.
CREATE FUNCTION payments.ledger_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the ledger is only added to: % of % is refused, post a reversal', TG_OP, TG_TABLE_NAME USING ERRCODE = 'PL001';
END $$;

CREATE TRIGGER ledger_transactions_are_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON payments.ledger_transactions
  FOR EACH STATEMENT EXECUTE FUNCTION payments.ledger_refuse_change();
CREATE TRIGGER ledger_entries_are_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON payments.ledger_entries
  FOR EACH STATEMENT EXECUTE FUNCTION payments.ledger_refuse_change();
CREATE TRIGGER ledger_checkpoints_are_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON payments.ledger_checkpoints
  FOR EACH STATEMENT EXECUTE FUNCTION payments.ledger_refuse_change();
