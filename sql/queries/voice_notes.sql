-- name: voice_notes_insert
-- Note that a process transcribes these messages, in the transaction that stores them.
INSERT INTO voice_notes (tenant_id, message_id, adapter, claimed_by)
SELECT :tenant_id, id, adapter, :process FROM unnest(:ids::uuid[], :adapters::text[]) AS new (id, adapter)
ON CONFLICT DO NOTHING

-- name: voice_notes_adopt
-- Take over the messages whose process has ended, if this process delivers there (`served`, see turns_adopt), each at
-- most `max_tries` times in all.
UPDATE voice_notes AS v SET claimed_by = :process, tries = tries + 1
WHERE tenant_id = :tenant_id AND claimed_by <> :process AND tries < :max_tries
      AND EXISTS (SELECT FROM messages AS m JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = m.conversation_id
                  WHERE m.tenant_id = :tenant_id AND m.id = v.message_id
                        AND ARRAY[v.adapter, v.adapter || ':' || c.workspace] && :served::text[])
      AND claimed_by NOT IN (SELECT live_processes())
RETURNING message_id, adapter

-- name: voice_note_delete
-- The transcription of a message has ended.
DELETE FROM voice_notes WHERE tenant_id = :tenant_id AND message_id = :id

-- name: voice_notes_give_up
-- Delete what as many processes as are allowed have begun, and none has ended.
DELETE FROM voice_notes AS v
WHERE tenant_id = :tenant_id AND claimed_by <> :process AND tries >= :max_tries
      AND EXISTS (SELECT FROM messages AS m JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = m.conversation_id
                  WHERE m.tenant_id = :tenant_id AND m.id = v.message_id
                        AND ARRAY[v.adapter, v.adapter || ':' || c.workspace] && :served::text[])
      AND claimed_by NOT IN (SELECT live_processes())
RETURNING message_id

-- name: voice_note_is_question
-- Whether there is a turn that answers a message.
SELECT EXISTS (SELECT FROM turns WHERE tenant_id = :tenant_id AND message_id = :id)
