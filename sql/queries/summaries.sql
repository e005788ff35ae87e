-- name: summaries_due_list
-- List the quarters of an hour that a tier has to summarise, oldest first.
SELECT d.conversation_id, d.namespace, d.quarter, c.kind, c.user_id, c.agent_id, c.archived_at
FROM summaries_due AS d JOIN conversations AS c ON c.tenant_id = d.tenant_id AND c.id = d.conversation_id
WHERE d.tenant_id = :tenant_id AND d.tier = :tier
ORDER BY d.quarter, d.namespace, d.conversation_id

-- name: summaries_mark_due
-- Mark a quarter of an hour as due for a tier.
INSERT INTO summaries_due (tenant_id, tier, conversation_id, namespace, quarter) VALUES (:tenant_id, :tier,
    :conversation_id, :namespace, :quarter)
ON CONFLICT DO NOTHING

-- name: summaries_mark_processed
-- Remove quarters of an hour that a tier has processed.
DELETE FROM summaries_due
WHERE tenant_id = :tenant_id AND tier = :tier AND conversation_id = :conversation_id AND namespace = :namespace
      AND quarter = ANY (:quarters::timestamptz[])

-- name: activity_around
-- Find where the activity around two times began and ended: the last message up to the first one that follows a pause, and the
-- first message from the last one on that a pause follows.
SELECT (
SELECT m.at FROM messages AS m
WHERE m.tenant_id = :tenant_id AND m.conversation_id = :conversation_id AND m.namespace = :namespace AND m.at <= :first
      AND NOT m.ephemeral AND m.agent_id IS NULL
      AND NOT EXISTS (SELECT FROM messages AS p
                      WHERE p.tenant_id = :tenant_id AND p.conversation_id = :conversation_id
                            AND p.namespace = :namespace AND NOT p.ephemeral
                            AND p.agent_id IS NULL AND p.at < m.at AND p.at > m.at - :pause::interval)
ORDER BY m.at DESC
LIMIT 1
) AS began, (
SELECT m.at FROM messages AS m
WHERE m.tenant_id = :tenant_id AND m.conversation_id = :conversation_id AND m.namespace = :namespace AND m.at >= :last
      AND NOT m.ephemeral AND m.agent_id IS NULL
      AND NOT EXISTS (SELECT FROM messages AS n
                      WHERE n.tenant_id = :tenant_id AND n.conversation_id = :conversation_id
                            AND n.namespace = :namespace AND NOT n.ephemeral
                            AND n.agent_id IS NULL AND n.at > m.at AND n.at < m.at + :pause::interval)
ORDER BY m.at
LIMIT 1
) AS ended

-- name: summarised_messages
-- Get people's messages of a conversation (with a room's threads, if asked for) in a span of time, its end excluded,
-- oldest first; without ephemeral messages and those of people who opted out.
SELECT m.id, m.external_id, m.seq, m.at, m.user_id, m.agent_id, m.author, m.text, m.attachments, m.mentions,
       m.namespace, m.visibility, m.edited_at, m.conversation_id
FROM conversations AS c
JOIN messages AS m ON m.tenant_id = :tenant_id AND m.conversation_id = c.id
JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = m.user_id AND NOT u.opted_out
WHERE c.tenant_id = :tenant_id AND (c.id = :conversation_id OR (:with_threads AND c.room_id = :conversation_id))
      AND m.namespace = :namespace AND m.visibility = :visibility
      AND m.at >= :since AND m.at < :until AND NOT m.ephemeral AND m.agent_id IS NULL
ORDER BY m.at, m.conversation_id, m.seq

-- name: summaries_overlapping
-- Get the summaries of a tier that overlap a span of time, its end excluded.
SELECT id, starts_at, ends_at, text FROM summaries
WHERE tenant_id = :tenant_id AND tier = :tier AND conversation_id = :conversation_id AND namespace = :namespace
      AND starts_at < :until
      AND (ends_at > :since OR starts_at >= :since)
ORDER BY starts_at, id

-- name: summary_insert
-- Store a summary.
INSERT INTO summaries (tenant_id, id, conversation_id, tier, namespace, user_id, agent_id, visibility, starts_at,
                       ends_at, text,
                       tokens, model, created_at)
VALUES (:tenant_id, :id, :conversation_id, :tier, :namespace, :user_id, :agent_id, :visibility, :starts_at, :ends_at,
    :text, :tokens, :model, :now)
ON CONFLICT DO NOTHING
