-- name: voice_notes_insert
-- Note that a process transcribes these messages, in the transaction that stores them.
INSERT INTO voice_notes (tenant_id, message_id, adapter, claimed_by)
SELECT :tenant_id, id, adapter, :process FROM unnest(:ids::uuid[], :adapters::text[]) AS new (id, adapter)
ON CONFLICT DO NOTHING

-- name: voice_notes_adopt
-- Take over the messages whose process has ended, each at most `max_tries` times in all.
UPDATE voice_notes SET claimed_by = :process, tries = tries + 1
WHERE tenant_id = :tenant_id AND claimed_by <> :process AND adapter = ANY (:adapters::text[]) AND tries < :max_tries
      AND claimed_by NOT IN (SELECT live_processes())
RETURNING message_id, adapter

-- name: voice_note_delete
-- The transcription of a message has ended.
DELETE FROM voice_notes WHERE tenant_id = :tenant_id AND message_id = :id

-- name: voice_notes_give_up
-- Delete what as many processes as are allowed have begun, and none has ended.
DELETE FROM voice_notes
WHERE tenant_id = :tenant_id AND claimed_by <> :process AND adapter = ANY (:adapters::text[]) AND tries >= :max_tries
      AND claimed_by NOT IN (SELECT live_processes())
RETURNING message_id
