-- requires: 1
-- Lists of messages by type read what they show, and an account has one endpoint for a URL.

-- Without it a list of one type reads all messages of the account until it has found enough of that type.
CREATE INDEX webhook_messages_by_type ON webhook_messages (account, type, created_at, id);

-- Of several endpoints with one URL the newest stays: its secret was shown last.
UPDATE webhook_endpoints AS e SET state = 'removed', disabled_why = NULL, changed_at = clock_timestamp()
WHERE e.state <> 'removed' AND EXISTS (
  SELECT FROM webhook_endpoints AS o WHERE o.account = e.account AND o.url = e.url AND o.state <> 'removed'
    AND (o.created_at, o.id) > (e.created_at, e.id)
);
-- By a digest: a URL may be nearly as long as an entry of an index can be.
CREATE UNIQUE INDEX webhook_endpoints_url ON webhook_endpoints (account, md5(url)) WHERE state <> 'removed';
