-- name: voice_notes_insert
-- Note that these messages are to be transcribed, in the transaction that stores them.
INSERT INTO voice_notes (tenant_id, message_id, adapter)
SELECT :tenant_id, id, adapter FROM unnest(:ids::uuid[], :adapters::text[]) AS new (id, adapter)
ON CONFLICT DO NOTHING

-- name: voice_notes_unowned
-- List the messages that no process transcribes, where this process delivers (`served`, see turns_unowned).
SELECT v.message_id, v.adapter
FROM voice_notes AS v JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = v.message_id
JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = m.conversation_id
WHERE v.tenant_id = :tenant_id AND ARRAY[v.adapter, v.adapter || ':' || c.workspace] && :served::text[]
      AND process_lock(v.message_id) NOT IN (SELECT live_processes())

-- name: voice_note_begin_again
-- Count one more process that begins a message; no row where as many have begun it as may.
UPDATE voice_notes SET tries = tries + 1
WHERE tenant_id = :tenant_id AND message_id = :id AND tries < :max_tries
RETURNING message_id

-- name: voice_note_delete
-- The transcription of a message has ended.
DELETE FROM voice_notes WHERE tenant_id = :tenant_id AND message_id = :id

-- name: voice_note_is_question
-- Whether there is a turn that answers a message.
SELECT EXISTS (SELECT FROM turns WHERE tenant_id = :tenant_id AND message_id = :id)
