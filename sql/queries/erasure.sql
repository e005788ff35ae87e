-- name: erase_messages
-- Delete messages. Their episodes are deleted with them.
DELETE FROM messages WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) RETURNING id, conversation_id

-- name: tombstones_insert
-- Record erased ids, so that an erased message is not stored again and an answer that is being made from it is not
-- sent.
INSERT INTO erased (tenant_id, id, erased_at) SELECT :tenant_id, id, :now
    FROM unnest(:ids::uuid[]) AS id ON CONFLICT DO NOTHING

-- name: erase_memories
-- Delete memories.
DELETE FROM memories WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) RETURNING id

-- name: erase_facts
-- Delete facts.
DELETE FROM facts WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) RETURNING id

-- name: erase_landmarks
-- Delete landmarks.
DELETE FROM landmarks WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) RETURNING id

-- name: erase_summaries
-- Delete summaries. The summary job makes them again from the remaining messages.
DELETE FROM summaries WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) RETURNING id

-- name: erase_prompts
-- Clear the stored prompts of these turns and of those that answered these messages. The turns themselves remain.
UPDATE turns SET prompt = NULL
WHERE tenant_id = :tenant_id AND (id = ANY (:turn_ids::uuid[]) OR message_id = ANY (:message_ids::uuid[]))
      AND prompt IS NOT NULL
RETURNING conversation_id

-- name: turns_delete_queued
-- Delete queued turns whose question was erased.
DELETE FROM turns WHERE tenant_id = :tenant_id AND message_id = ANY (:message_ids::uuid[])
    AND state = 'queued' RETURNING id

-- name: replies_find
-- Find the answers of these turns, and those to these messages.
SELECT m.id, t.id AS turn_id, m.conversation_id, t.message_id AS question_id, m.text FROM turns AS t
JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.reply_id
WHERE t.tenant_id = :tenant_id AND (t.id = ANY (:turn_ids::uuid[]) OR t.message_id = ANY (:message_ids::uuid[]))

-- name: erase_replace_text
-- Replace the text of answers. They keep their place in the conversation.
UPDATE messages SET text = :text WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])

-- name: erasable_of_user
-- List the kinds and ids of everything a person owns, apart from messages.
SELECT 'memory' AS kind, id FROM memories WHERE tenant_id = :tenant_id AND user_id = :user_id
UNION ALL SELECT 'fact', id FROM facts WHERE tenant_id = :tenant_id AND user_id = :user_id
UNION ALL SELECT 'landmark', id FROM landmarks WHERE tenant_id = :tenant_id AND user_id = :user_id

-- name: messages_texts
-- Get the texts of messages and of their attachments, to find answers that repeat them.
SELECT conversation_id, text,
       ARRAY(SELECT concat_ws(' ', a ->> 'name', a ->> 'text') FROM jsonb_array_elements(attachments) AS a) AS attached
FROM messages WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])

-- name: erasable_find_matching
-- Find a person's own messages, attachments and entries that contain these words, in some namespaces.
SELECT 'message' AS kind, id FROM messages
WHERE tenant_id = :tenant_id AND user_id = :user_id AND agent_id IS NULL AND namespace = ANY (:namespaces::text[])
      AND (position(lower(:words) IN lower(text)) > 0
           OR EXISTS (SELECT FROM jsonb_array_elements(attachments) AS a
                      WHERE position(lower(:words) IN lower(concat_ws(' ', a ->> 'name', a ->> 'text'))) > 0))
UNION ALL
SELECT 'memory', id FROM memories
WHERE tenant_id = :tenant_id AND user_id = :user_id AND namespace = ANY (:namespaces::text[])
      AND position(lower(:words) IN lower(text)) > 0
UNION ALL
SELECT 'fact', id FROM facts
WHERE tenant_id = :tenant_id AND user_id = :user_id AND namespace = ANY (:namespaces::text[])
      AND (position(lower(:words) IN lower(key)) > 0 OR position(lower(:words) IN lower(value::text)) > 0)
UNION ALL
SELECT 'landmark', id FROM landmarks
WHERE tenant_id = :tenant_id AND user_id = :user_id AND namespace = ANY (:namespaces::text[])
      AND position(lower(:words) IN lower(text)) > 0

-- name: erasure_block
-- Block erasure until this transaction ends (see erasure_lock). Several transactions may hold this lock at once.
SELECT pg_advisory_xact_lock_shared(hashtextextended('erasing ' || :tenant_id::uuid::text, 0))

-- name: sources_changed
-- Find which sources of an answer were erased or edited since they were read, with their present text (NULL: erased).
-- `ids` are messages, episodes, memories and facts; a text of NULL checks only that the row exists. `derived_ids` are
-- landmarks, summaries and compactions, which are also deleted when others replace them.
SELECT s.id, coalesce(m.text, said.text) AS text
FROM unnest(:ids::uuid[], :texts::text[]) AS s (id, text)
LEFT JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = s.id
LEFT JOIN episodes AS e ON e.tenant_id = :tenant_id AND e.id = s.id
LEFT JOIN messages AS said ON said.tenant_id = :tenant_id AND said.id = e.message_id
WHERE CASE WHEN s.text IS NULL THEN NOT EXISTS (SELECT FROM memories WHERE tenant_id = :tenant_id AND id = s.id)
                                    AND NOT EXISTS (SELECT FROM facts WHERE tenant_id = :tenant_id AND id = s.id)
           ELSE coalesce(m.text, said.text) IS DISTINCT FROM s.text END
UNION ALL
SELECT id, NULL FROM erased
WHERE tenant_id = :tenant_id AND id = ANY (:derived_ids::uuid[])
      AND NOT EXISTS (SELECT FROM landmarks AS l WHERE l.tenant_id = :tenant_id AND l.id = erased.id)
      AND NOT EXISTS (SELECT FROM summaries AS s WHERE s.tenant_id = :tenant_id AND s.id = erased.id)
      AND NOT EXISTS (SELECT FROM compactions AS c WHERE c.tenant_id = :tenant_id AND c.id = erased.id)
