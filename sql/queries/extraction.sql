-- name: extraction_queue_put
-- What for: messages that a model is to look at. $1 tenant, $2 messages.
INSERT INTO extraction_queue (tenant_id, message_id, conversation_id, namespace, visibility, queued_at)
SELECT $1, id, conversation_id, namespace, visibility, at FROM messages WHERE tenant_id = $1 AND id = ANY ($2::uuid[])
ON CONFLICT DO NOTHING

-- name: extraction_due
-- What for: the scopes whose turn it is: enough said, or nothing more for a while; not parked, not waiting after a failure,
-- and worked on by nobody. $1 tenant, $2 now, $3 enough, $4 quiet since, $5 how many.
SELECT q.conversation_id, q.namespace, q.visibility
FROM extraction_queue AS q
LEFT JOIN extraction_batches AS b ON b.tenant_id = $1 AND b.conversation_id = q.conversation_id AND b.namespace = q.namespace
                                     AND b.visibility = q.visibility
WHERE q.tenant_id = $1 AND b.parked_at IS NULL AND (b.due_at IS NULL OR b.due_at <= $2)
      AND (b.claimed_until IS NULL OR b.claimed_until <= $2)
GROUP BY q.conversation_id, q.namespace, q.visibility
HAVING count(*) >= $3 OR max(q.queued_at) <= $4
ORDER BY min(q.queued_at), q.conversation_id, q.namespace, q.visibility
LIMIT $5

-- name: extraction_claim
-- What for: one attempt takes a scope's queue; nobody else does until it is over or too late. $1 tenant, $2 conversation,
-- $3 run, $4 visibility, $5 claim, $6 now, $7 until.
INSERT INTO extraction_batches AS b (tenant_id, conversation_id, namespace, visibility, claim, claimed_until)
VALUES ($1, $2, $3, $4, $5, $7)
ON CONFLICT (tenant_id, conversation_id, namespace, visibility) DO UPDATE SET claim = excluded.claim, claimed_until = excluded.claimed_until
WHERE b.parked_at IS NULL AND (b.claimed_until IS NULL OR b.claimed_until <= $6) AND (b.due_at IS NULL OR b.due_at <= $6)
RETURNING claim

-- name: extraction_messages
-- What for: the oldest messages of a scope's queue, for the extractor alone. $1 tenant, $2 conversation, $3 run, $4 visibility,
-- $5 how many.
SELECT m.id, m.external_id, m.seq, m.at, m.user_id, m.agent_id, m.author, m.text, m.attachments, m.mentions, m.namespace,
       m.visibility
FROM extraction_queue AS q JOIN messages AS m ON m.tenant_id = $1 AND m.id = q.message_id
WHERE q.tenant_id = $1 AND q.conversation_id = $2 AND q.namespace = $3 AND q.visibility = $4
ORDER BY m.at, m.seq
LIMIT $5

-- name: extraction_unchanged
-- What for: whether the messages still say what the model was shown; they stay so until this transaction ends. $1 tenant,
-- $2 ids, $3 texts.
SELECT m.id FROM messages AS m
JOIN unnest($2::uuid[], $3::text[]) AS shown (id, text) ON m.id = shown.id AND m.text = shown.text
JOIN extraction_queue AS q ON q.tenant_id = $1 AND q.message_id = m.id
WHERE m.tenant_id = $1
FOR UPDATE OF m

-- name: extraction_done
-- What for: an attempt is over: its messages leave the queue, if it still has the claim. $1 tenant, $2 conversation, $3 run,
-- $4 visibility, $5 claim, $6 messages.
WITH mine AS (
    DELETE FROM extraction_batches
    WHERE tenant_id = $1 AND conversation_id = $2 AND namespace = $3 AND visibility = $4 AND claim = $5
    RETURNING claim
)
DELETE FROM extraction_queue WHERE tenant_id = $1 AND message_id = ANY ($6::uuid[]) AND EXISTS (SELECT FROM mine) RETURNING message_id

-- name: extraction_claimed
-- What for: whether an attempt still has its claim; nobody takes it before this transaction ends. $1 tenant, $2 conversation,
-- $3 run, $4 visibility, $5 claim.
SELECT claim FROM extraction_batches
WHERE tenant_id = $1 AND conversation_id = $2 AND namespace = $3 AND visibility = $4 AND claim = $5
FOR UPDATE

-- name: extraction_failed
-- What for: an attempt failed: try again later, or park it. $1 tenant, $2 conversation, $3 run, $4 visibility, $5 claim, $6 sentence,
-- $7 due at, $8 parked at or NULL.
UPDATE extraction_batches
SET claim = NULL, claimed_until = NULL, attempts = attempts + 1, error = $6, due_at = $7, parked_at = $8
WHERE tenant_id = $1 AND conversation_id = $2 AND namespace = $3 AND visibility = $4 AND claim = $5

-- name: extraction_attempts
-- What for: how often a scope's queue has failed in a row. $1 tenant, $2 conversation, $3 run, $4 visibility.
SELECT attempts FROM extraction_batches WHERE tenant_id = $1 AND conversation_id = $2 AND namespace = $3 AND visibility = $4

-- name: extraction_release
-- What for: an attempt is given up without a failure; the next may begin at once. $1 tenant, $2 conversation, $3 run, $4 visibility,
-- $5 claim.
UPDATE extraction_batches SET claim = NULL, claimed_until = NULL
WHERE tenant_id = $1 AND conversation_id = $2 AND namespace = $3 AND visibility = $4 AND claim = $5

-- name: extraction_unpark
-- What for: an admin lets parked batches be tried again. $1 tenant.
UPDATE extraction_batches SET parked_at = NULL, attempts = 0, due_at = NULL, error = NULL
WHERE tenant_id = $1 AND parked_at IS NOT NULL RETURNING conversation_id

-- name: extraction_backlog
-- What for: figures for doctor, and what stands in the way. $1 tenant.
SELECT (SELECT count(*) FROM extraction_queue WHERE tenant_id = $1) AS waiting,
       (SELECT count(*) FROM extraction_batches WHERE tenant_id = $1 AND parked_at IS NOT NULL) AS parked,
       (SELECT error FROM extraction_batches WHERE tenant_id = $1 AND parked_at IS NOT NULL ORDER BY parked_at DESC LIMIT 1) AS error
