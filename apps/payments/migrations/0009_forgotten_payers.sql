-- A payer who is forgotten is no reason to charge the same order twice.

-- The payer by whom the payment is compared with others, after its own payer was erased or replaced. Empty when that time is over: then
-- it is the same as no other.
ALTER TABLE payments.payments ADD COLUMN intent_payer text;
-- When that is over, at the earliest: a payment that is under way, in doubt or held is compared for as long as it is.
ALTER TABLE payments.payments ADD COLUMN intent_payer_until timestamptz;

DROP INDEX payments.payments_one_intent;
CREATE UNIQUE INDEX payments_one_intent
  ON payments.payments (account, reference, amount, currency, coalesce(intent_payer, payer, payment_method))
  WHERE refuses_duplicates AND status NOT IN ('failed', 'canceled', 'expired');

DROP INDEX payments.payments_by_intent;
CREATE INDEX payments_by_intent
  ON payments.payments (account, reference, amount, currency, coalesce(intent_payer, payer, payment_method), id)
  WHERE reference IS NOT NULL;

-- For a worker, over all accounts.
CREATE INDEX payments_forgotten ON payments.payments (intent_payer_until)
  WHERE intent_payer_until IS NOT NULL AND status IN ('succeeded', 'failed', 'canceled', 'expired');
