-- name: extraction_enqueue
-- Queue messages for extraction by a model.
INSERT INTO extraction_queue (tenant_id, message_id, conversation_id, namespace, visibility, queued_at)
SELECT :tenant_id, id, conversation_id, namespace, visibility, at FROM messages WHERE tenant_id = :tenant_id
    AND id = ANY (:message_ids::uuid[])
ON CONFLICT DO NOTHING

-- name: extraction_due
-- List the scopes that are ready for extraction, longest waiting first: enough messages are queued, no message came for
-- a while, or the oldest has waited for long; not parked, not waiting after a failure, not claimed.
SELECT q.conversation_id, q.namespace, q.visibility
FROM extraction_queue AS q
LEFT JOIN extraction_batches AS b ON b.tenant_id = :tenant_id AND b.conversation_id = q.conversation_id
                                     AND b.namespace = q.namespace
                                     AND b.visibility = q.visibility
WHERE q.tenant_id = :tenant_id AND b.parked_at IS NULL AND (b.due_at IS NULL OR b.due_at <= :now)
      AND (b.claimed_until IS NULL OR b.claimed_until <= :now)
GROUP BY q.conversation_id, q.namespace, q.visibility
HAVING count(*) >= :batch_size OR max(q.queued_at) <= :quiet_since OR min(q.queued_at) <= :waiting_since
ORDER BY min(q.queued_at), q.conversation_id, q.namespace, q.visibility
LIMIT :limit

-- name: extraction_claim
-- Claim a scope's queue for one attempt, until the attempt ends or its time runs out.
INSERT INTO extraction_batches AS b (tenant_id, conversation_id, namespace, visibility, claim, claimed_until)
VALUES (:tenant_id, :conversation_id, :namespace, :visibility, :claim, :until)
ON CONFLICT (tenant_id, conversation_id, namespace, visibility) DO UPDATE SET claim = excluded.claim,
    claimed_until = excluded.claimed_until
WHERE b.parked_at IS NULL AND (b.claimed_until IS NULL OR b.claimed_until <= :now)
      AND (b.due_at IS NULL OR b.due_at <= :now)
RETURNING claim

-- name: extraction_messages
-- Get the oldest queued messages of a scope, for the extractor only.
SELECT m.id, m.external_id, m.seq, m.at, m.user_id, m.agent_id, m.author, m.text, m.attachments, m.mentions,
       m.namespace,
       m.visibility, m.trust
FROM extraction_queue AS q JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = q.message_id
WHERE q.tenant_id = :tenant_id AND q.conversation_id = :conversation_id AND q.namespace = :namespace
      AND q.visibility = :visibility
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

-- name: extraction_complete
-- End an attempt and remove its messages from the queue, if it still has the claim.
WITH ended_claim AS (
    DELETE FROM extraction_batches
    WHERE tenant_id = :tenant_id AND conversation_id = :conversation_id AND namespace = :namespace
          AND visibility = :visibility AND claim = :claim
    RETURNING claim
)
DELETE FROM extraction_queue WHERE tenant_id = :tenant_id AND message_id = ANY (:message_ids::uuid[])
    AND EXISTS (SELECT FROM ended_claim) RETURNING message_id

-- name: extraction_claimed
-- Lock an attempt's claim, if it still has it, until this transaction ends.
SELECT claim FROM extraction_batches
WHERE tenant_id = :tenant_id AND conversation_id = :conversation_id AND namespace = :namespace
      AND visibility = :visibility AND claim = :claim
FOR UPDATE

-- name: extraction_failed
-- End a failed attempt: retry at `due_at`, or park the scope.
UPDATE extraction_batches
SET claim = NULL, claimed_until = NULL, attempts = attempts + 1, error = :error, due_at = :due_at,
    parked_at = :parked_at
WHERE tenant_id = :tenant_id AND conversation_id = :conversation_id AND namespace = :namespace
      AND visibility = :visibility AND claim = :claim

-- name: extraction_attempts
-- Count a scope's failed attempts in a row.
SELECT attempts FROM extraction_batches WHERE tenant_id = :tenant_id AND conversation_id = :conversation_id
    AND namespace = :namespace AND visibility = :visibility

-- name: extraction_release
-- End an attempt without recording a failure. The next one may start at once.
UPDATE extraction_batches SET claim = NULL, claimed_until = NULL
WHERE tenant_id = :tenant_id AND conversation_id = :conversation_id AND namespace = :namespace
      AND visibility = :visibility AND claim = :claim

-- name: extraction_unpark
-- Let parked scopes be tried again.
UPDATE extraction_batches SET parked_at = NULL, attempts = 0, due_at = NULL, error = NULL
WHERE tenant_id = :tenant_id AND parked_at IS NOT NULL RETURNING conversation_id

-- name: extraction_backlog
-- Count queued messages and parked scopes, with the last error, for doctor.
SELECT (SELECT count(*) FROM extraction_queue WHERE tenant_id = :tenant_id) AS waiting,
       (SELECT count(*) FROM extraction_batches WHERE tenant_id = :tenant_id AND parked_at IS NOT NULL) AS parked,
       (SELECT error FROM extraction_batches WHERE tenant_id = :tenant_id AND parked_at IS NOT NULL
           ORDER BY parked_at DESC LIMIT 1) AS error
