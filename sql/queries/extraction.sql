-- name: extraction_enqueue
-- Queue messages for extraction by a model.
INSERT INTO extraction_queue (tenant_id, message_id, conversation_id, namespace, visibility, user_id, queued_at)
SELECT :tenant_id, id, conversation_id, namespace, visibility, user_id, at FROM messages WHERE tenant_id = :tenant_id
    AND id = ANY (:message_ids::uuid[]) AND user_id IS NOT NULL
ON CONFLICT DO NOTHING

-- name: extraction_due
-- List the scopes that are ready for extraction, in turns by author, longest waiting first: enough messages of their author
-- are queued, nobody wrote in the conversation for a while, or the oldest has waited for long; not parked, not waiting after a
-- failure, not claimed.
SELECT q.conversation_id, q.namespace, q.visibility, q.user_id AS "user"
FROM (
    SELECT conversation_id, namespace, visibility, user_id, count(*) AS waiting, min(queued_at) AS oldest,
           max(max(queued_at)) OVER (PARTITION BY conversation_id, namespace, visibility) AS newest
    FROM extraction_queue WHERE tenant_id = :tenant_id
    GROUP BY conversation_id, namespace, visibility, user_id
) AS q
LEFT JOIN learning_batches AS b ON b.tenant_id = :tenant_id AND b.scope
    = q.conversation_id || ' ' || q.namespace || ' ' || q.visibility || ' ' || q.user_id
WHERE b.parked_at IS NULL AND (b.due_at IS NULL OR b.due_at <= :now)
      AND (b.claimed_until IS NULL OR b.claimed_until <= :now)
      AND (q.waiting >= :batch_size OR q.newest <= :quiet_since OR q.oldest <= :waiting_since)
ORDER BY row_number() OVER (PARTITION BY q.user_id ORDER BY q.oldest),
         q.oldest, q.conversation_id, q.namespace, q.visibility, q.user_id
LIMIT :limit

-- name: extraction_messages
-- Get the oldest queued messages of a scope, for the extractor only.
SELECT m.id, m.external_id, m.seq, m.at, m.user_id, m.agent_id, m.author, m.text, m.attachments, m.mentions,
       m.namespace,
       m.visibility, m.trust
FROM extraction_queue AS q JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = q.message_id
WHERE q.tenant_id = :tenant_id AND q.conversation_id = :conversation_id AND q.namespace = :namespace
      AND q.visibility = :visibility AND q.user_id = :user_id
ORDER BY m.at, m.seq
LIMIT :limit

-- name: extraction_lock_unchanged
-- Lock the queued messages whose text is still what the model received. They stay unchanged until this transaction
-- ends.
SELECT m.id FROM messages AS m
JOIN unnest(:ids::uuid[], :texts::text[]) AS shown (id, text) ON m.id = shown.id AND m.text = shown.text
JOIN extraction_queue AS q ON q.tenant_id = :tenant_id AND q.message_id = m.id
WHERE m.tenant_id = :tenant_id
FOR UPDATE OF m

-- name: extraction_remove
-- Remove messages from the queue.
DELETE FROM extraction_queue WHERE tenant_id = :tenant_id AND message_id = ANY (:message_ids::uuid[])
