-- requires: 1
-- Other bytes under the id of a key look like another request for each key. A digest of the bytes tells it when a process starts.

-- NULL: noted by a version that knew no digests. A process that starts with the key adds it.
ALTER TABLE key_ids ADD COLUMN digest text COLLATE "C";
