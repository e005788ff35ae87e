-- name: erase_closure
-- What for: everything that flowed, over any number of steps, from some sources. $1 tenant, $2 source ids,
-- $3 whether also through answers, into the prompts that had those answers in view.
WITH RECURSIVE flowed (kind, id) AS (
    SELECT l.item_kind, l.item_id FROM lineage AS l WHERE l.tenant_id = $1 AND l.source_id = ANY ($2::uuid[])
    UNION
    SELECT l.item_kind, l.item_id FROM lineage AS l JOIN flowed AS f ON l.tenant_id = $1 AND l.source_id = f.id AND ($3 OR f.kind <> 'turn')
)
SELECT kind, id FROM flowed

-- name: erase_messages
-- What for: take messages out of the log; their episodes go with them. $1 tenant, $2 ids.
DELETE FROM messages WHERE tenant_id = $1 AND id = ANY ($2::uuid[]) RETURNING id, conversation_id

-- name: erase_tombstones
-- What for: an erased message does not come back, and an answer that is being written from something erased is not told.
-- $1 tenant, $2 ids, $3 now.
INSERT INTO erased (tenant_id, id, erased_at) SELECT $1, id, $3 FROM unnest($2::uuid[]) AS id ON CONFLICT DO NOTHING

-- name: erase_memories
-- What for: $1 tenant, $2 ids.
DELETE FROM memories WHERE tenant_id = $1 AND id = ANY ($2::uuid[]) RETURNING id

-- name: erase_facts
-- What for: $1 tenant, $2 ids.
DELETE FROM facts WHERE tenant_id = $1 AND id = ANY ($2::uuid[]) RETURNING id

-- name: erase_landmarks
-- What for: $1 tenant, $2 ids.
DELETE FROM landmarks WHERE tenant_id = $1 AND id = ANY ($2::uuid[]) RETURNING id

-- name: erase_summaries
-- What for: the job that writes summaries makes them again from what is left. $1 tenant, $2 ids.
DELETE FROM summaries WHERE tenant_id = $1 AND id = ANY ($2::uuid[]) RETURNING id

-- name: erase_prompts
-- What for: stored prompts that held something erased are emptied; which turn was answered stays. $1 tenant, $2 turn ids,
-- $3 ids of erased messages, whose own turns are emptied too.
UPDATE turns SET prompt = NULL
WHERE tenant_id = $1 AND (id = ANY ($2::uuid[]) OR message_id = ANY ($3::uuid[])) AND prompt IS NOT NULL
RETURNING conversation_id

-- name: erase_cancel_turns
-- What for: a question that was erased before it was answered is not answered. $1 tenant, $2 message ids.
DELETE FROM turns WHERE tenant_id = $1 AND message_id = ANY ($2::uuid[]) AND state = 'queued' RETURNING id

-- name: erase_replies
-- What for: which answers of the agent were made from something erased. $1 tenant, $2 turn ids, $3 erased message ids.
SELECT m.id, t.id AS turn_id, m.conversation_id, t.message_id AS asked, m.text FROM turns AS t
JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.reply_id
WHERE t.tenant_id = $1 AND (t.id = ANY ($2::uuid[]) OR t.message_id = ANY ($3::uuid[]))

-- name: erase_withdraw
-- What for: the words of such an answer go, its place in the talk stays. $1 tenant, $2 message ids, $3 what stands instead.
UPDATE messages SET text = $3 WHERE tenant_id = $1 AND id = ANY ($2::uuid[])

-- name: erase_lineage
-- What for: what is gone has no lineage. $1 tenant, $2 ids of items and sources.
DELETE FROM lineage WHERE tenant_id = $1 AND (item_id = ANY ($2::uuid[]) OR source_id = ANY ($2::uuid[]))

-- name: erasable_of_user
-- What for: all that is a person's own, beside what they said: kinds and ids. $1 tenant, $2 user.
SELECT 'memory' AS kind, id FROM memories WHERE tenant_id = $1 AND user_id = $2
UNION ALL SELECT 'fact', id FROM facts WHERE tenant_id = $1 AND user_id = $2
UNION ALL SELECT 'landmark', id FROM landmarks WHERE tenant_id = $1 AND user_id = $2

-- name: erase_texts
-- What for: the words of messages and those of what was attached to them, to find answers that repeat them. $1 tenant, $2 ids.
SELECT conversation_id, text,
       ARRAY(SELECT concat_ws(' ', a ->> 'name', a ->> 'text') FROM jsonb_array_elements(attachments) AS a) AS attached
FROM messages WHERE tenant_id = $1 AND id = ANY ($2::uuid[])

-- name: erase_matching
-- What for: what a person means by "forget these words": their own, in some runs, also in what they attached. $1 tenant,
-- $2 user, $3 runs, $4 words.
SELECT 'message' AS kind, id FROM messages
WHERE tenant_id = $1 AND user_id = $2 AND agent_id IS NULL AND namespace = ANY ($3::text[])
      AND (position(lower($4) IN lower(text)) > 0
           OR EXISTS (SELECT FROM jsonb_array_elements(attachments) AS a
                      WHERE position(lower($4) IN lower(concat_ws(' ', a ->> 'name', a ->> 'text'))) > 0))
UNION ALL
SELECT 'memory', id FROM memories
WHERE tenant_id = $1 AND user_id = $2 AND namespace = ANY ($3::text[]) AND position(lower($4) IN lower(text)) > 0
UNION ALL
SELECT 'fact', id FROM facts
WHERE tenant_id = $1 AND user_id = $2 AND namespace = ANY ($3::text[])
      AND (position(lower($4) IN lower(key)) > 0 OR position(lower($4) IN lower(value::text)) > 0)
UNION ALL
SELECT 'landmark', id FROM landmarks
WHERE tenant_id = $1 AND user_id = $2 AND namespace = ANY ($3::text[]) AND position(lower($4) IN lower(text)) > 0

-- name: erase_held_off
-- What for: nothing is erased until this transaction ends (see summaries_serial); others of the kind go side by side. $1 tenant.
SELECT pg_advisory_xact_lock_shared(hashtextextended('erasing ' || $1::uuid::text, 0))

-- name: erased_since
-- What for: which sources of an answer were erased or edited since they were read, with what they say now (NULL: nothing).
-- $1 tenant, $2 ids of messages, episodes, memories and facts, $3 texts; NULL for what is only looked for; $4 ids of landmarks
-- and summaries, which also go when others take their place.
SELECT s.id, coalesce(m.text, said.text) AS text
FROM unnest($2::uuid[], $3::text[]) AS s (id, text)
LEFT JOIN messages AS m ON m.tenant_id = $1 AND m.id = s.id
LEFT JOIN episodes AS e ON e.tenant_id = $1 AND e.id = s.id
LEFT JOIN messages AS said ON said.tenant_id = $1 AND said.id = e.message_id
WHERE CASE WHEN s.text IS NULL THEN NOT EXISTS (SELECT FROM memories WHERE tenant_id = $1 AND id = s.id)
                                    AND NOT EXISTS (SELECT FROM facts WHERE tenant_id = $1 AND id = s.id)
           ELSE coalesce(m.text, said.text) IS DISTINCT FROM s.text END
UNION ALL
SELECT id, NULL FROM erased
WHERE tenant_id = $1 AND id = ANY ($4::uuid[])
      AND NOT EXISTS (SELECT FROM landmarks AS l WHERE l.tenant_id = $1 AND l.id = erased.id)
      AND NOT EXISTS (SELECT FROM summaries AS s WHERE s.tenant_id = $1 AND s.id = erased.id)
      AND NOT EXISTS (SELECT FROM compactions AS c WHERE c.tenant_id = $1 AND c.id = erased.id)
