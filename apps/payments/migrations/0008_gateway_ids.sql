-- What the processor calls a payment or a refund belongs to one of ours. An operator who tells that a request was executed names it by hand,
-- and one charge there must not be posted twice here.

-- Rows that share an id from before these indexes. They stay as they are, and reconciliation tells of them.
ALTER TABLE payments.payments ADD COLUMN shares_gateway_id boolean NOT NULL DEFAULT false;
ALTER TABLE payments.refunds ADD COLUMN shares_gateway_id boolean NOT NULL DEFAULT false;

UPDATE payments.payments p SET shares_gateway_id = true
WHERE p.gateway_id IS NOT NULL AND p.status <> 'failed' AND EXISTS (
  SELECT FROM payments.payments o
  WHERE o.gateway = p.gateway AND o.gateway_id = p.gateway_id AND o.status <> 'failed'
    AND split_part(o.account, ':', 2) = split_part(p.account, ':', 2)
    AND (o.created_at, o.account, o.id) < (p.created_at, p.account, p.id));
UPDATE payments.refunds r SET shares_gateway_id = true
WHERE r.gateway_id IS NOT NULL AND r.status <> 'failed' AND EXISTS (
  SELECT FROM payments.refunds o
  WHERE o.gateway_id = r.gateway_id AND o.status <> 'failed'
    AND split_part(o.account, ':', 2) = split_part(r.account, ':', 2)
    AND (o.created_at, o.account, o.payment, o.id) < (r.created_at, r.account, r.payment, r.id));

-- Over all accounts of a mode: one account's charge must not be posted to another. What has failed moved nothing, and a processor may name
-- the payment in place of a refund that it refused.
CREATE UNIQUE INDEX payments_gateway_id ON payments.payments (gateway_id, gateway, split_part(account, ':', 2))
  WHERE gateway_id IS NOT NULL AND status <> 'failed' AND NOT shares_gateway_id;
CREATE UNIQUE INDEX refunds_gateway_id ON payments.refunds (gateway_id, split_part(account, ':', 2))
  WHERE gateway_id IS NOT NULL AND status <> 'failed' AND NOT shares_gateway_id;
