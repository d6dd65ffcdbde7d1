-- Reconciliation reads all accounts of a processor by time, page by page. These never change after the insert, which is at the
-- right end of the index.
CREATE INDEX payments_by_time ON payments.payments (created_at, id);
CREATE INDEX refunds_by_time ON payments.refunds (created_at, id);

-- When both books were read: by this the worker knows whether a day was looked at late enough.
ALTER TABLE payments.reconciliation_runs ADD COLUMN read_at timestamptz NOT NULL DEFAULT now();
