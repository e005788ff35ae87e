-- name: unread_files_insert
-- Note that the files of these messages are to be read, in the transaction that stores them.
INSERT INTO unread_files (tenant_id, message_id, adapter)
SELECT :tenant_id, id, adapter FROM unnest(:ids::uuid[], :adapters::text[]) AS new (id, adapter)
ON CONFLICT DO NOTHING

-- name: unread_files_unowned
-- List the messages whose files no process reads, where this process delivers (`served`, see turns_unowned).
SELECT f.message_id, f.adapter
FROM unread_files AS f JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = f.message_id
JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = m.conversation_id
WHERE f.tenant_id = :tenant_id AND ARRAY[f.adapter, f.adapter || ':' || c.workspace] && :served::text[]
      AND process_lock(f.message_id) NOT IN (SELECT live_processes())

-- name: unread_files_begin_again
-- Count one more process that begins a message; no row where as many have begun it as may.
UPDATE unread_files SET tries = tries + 1
WHERE tenant_id = :tenant_id AND message_id = :id AND tries < :max_tries
RETURNING message_id

-- name: unread_files_delete
-- The files of a message are read.
DELETE FROM unread_files WHERE tenant_id = :tenant_id AND message_id = :id
