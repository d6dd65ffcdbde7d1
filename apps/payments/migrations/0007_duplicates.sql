-- One order under many keys is one payment, where the account or the request asks for that.

ALTER TABLE payments.accounts ADD COLUMN duplicates text NOT NULL DEFAULT 'warn' CHECK (duplicates IN ('warn', 'refuse'));

-- The account's own name for what is paid: at most one payment has it that is under way or has succeeded.
ALTER TABLE payments.payments ADD COLUMN unique_reference text;
-- Whether no other payment with the same intent may begin. False again when its time is over.
ALTER TABLE payments.payments ADD COLUMN refuses_duplicates boolean NOT NULL DEFAULT false;

-- These decide, in the first step of a payment. A payment leaves them by its status: declined, canceled, expired, or
-- proved not to have been executed.
CREATE UNIQUE INDEX payments_unique_reference ON payments.payments (account, unique_reference)
  WHERE unique_reference IS NOT NULL AND status NOT IN ('failed', 'canceled', 'expired');
CREATE UNIQUE INDEX payments_one_intent
  ON payments.payments (account, reference, amount, currency, coalesce(payer, payment_method))
  WHERE refuses_duplicates AND status NOT IN ('failed', 'canceled', 'expired');

-- Of one reference there may be any number of payments; those with the same intent are few, and are found by this.
CREATE INDEX payments_by_intent
  ON payments.payments (account, reference, amount, currency, coalesce(payer, payment_method), id)
  WHERE reference IS NOT NULL;
