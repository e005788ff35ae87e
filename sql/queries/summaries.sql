-- name: summaries_due_list
-- What for: what a tier has to look at, oldest first. $1 tenant, $2 tier.
SELECT d.conversation_id, d.namespace, d.quarter, c.kind, c.user_id, c.agent_id, c.archived_at
FROM summaries_due AS d JOIN conversations AS c ON c.tenant_id = d.tenant_id AND c.id = d.conversation_id
WHERE d.tenant_id = $1 AND d.tier = $2
ORDER BY d.quarter, d.namespace, d.conversation_id

-- name: summaries_due_put
-- What for: a higher tier has to look. $1 tenant, $2 tier, $3 conversation, $4 run, $5 when.
INSERT INTO summaries_due (tenant_id, tier, conversation_id, namespace, quarter) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING

-- name: summaries_due_done
-- What for: a tier has looked. $1 tenant, $2 tier, $3 conversation, $4 run, $5 when (several).
DELETE FROM summaries_due
WHERE tenant_id = $1 AND tier = $2 AND conversation_id = $3 AND namespace = $4 AND quarter = ANY ($5::timestamptz[])

-- name: summaries_serial
-- What for: summaries are stored, and messages erased, one after another in a tenant: what is being erased can't be written
-- into a summary behind the back of the erasure. StoredMemory until the transaction ends. $1 tenant.
SELECT pg_advisory_xact_lock(hashtextextended('erasing ' || $1::uuid::text, 0))

-- name: stretch_start
-- What for: where the stretch of talk begins that was going on at a moment: the last message up to then that follows a
-- pause. $1 tenant, $2 conversation, $3 run, $4 when, $5 the pause.
SELECT m.at FROM messages AS m
WHERE m.tenant_id = $1 AND m.conversation_id = $2 AND m.namespace = $3 AND m.at <= $4 AND NOT m.ephemeral AND m.agent_id IS NULL
      AND NOT EXISTS (SELECT FROM messages AS p
                      WHERE p.tenant_id = $1 AND p.conversation_id = $2 AND p.namespace = $3 AND NOT p.ephemeral
                            AND p.agent_id IS NULL AND p.at < m.at AND p.at > m.at - $5::interval)
ORDER BY m.at DESC
LIMIT 1

-- name: stretch_end
-- What for: where it ends: the first message from then on that a pause follows. Parameters as above.
SELECT m.at FROM messages AS m
WHERE m.tenant_id = $1 AND m.conversation_id = $2 AND m.namespace = $3 AND m.at >= $4 AND NOT m.ephemeral AND m.agent_id IS NULL
      AND NOT EXISTS (SELECT FROM messages AS n
                      WHERE n.tenant_id = $1 AND n.conversation_id = $2 AND n.namespace = $3 AND NOT n.ephemeral
                            AND n.agent_id IS NULL AND n.at > m.at AND n.at < m.at + $5::interval)
ORDER BY m.at
LIMIT 1

-- name: summarised_messages
-- What for: what people said in a run of a conversation (and, of a room, in its threads if $7) in a span of time, oldest
-- first; nothing of those who have opted out, nothing that is kept for its answer alone. $1 tenant, $2 conversation, $3 run,
-- $4 visibility, $5 from, $6 until (not included).
SELECT m.id, m.external_id, m.seq, m.at, m.user_id, m.agent_id, m.author, m.text, m.attachments, m.mentions, m.namespace,
       m.visibility, m.edited_at
FROM conversations AS c
JOIN messages AS m ON m.tenant_id = $1 AND m.conversation_id = c.id
JOIN users AS u ON u.tenant_id = $1 AND u.id = m.user_id AND NOT u.opted_out
WHERE c.tenant_id = $1 AND (c.id = $2 OR ($7 AND c.room_id = $2)) AND m.namespace = $3 AND m.visibility = $4
      AND m.at >= $5 AND m.at < $6 AND NOT m.ephemeral AND m.agent_id IS NULL
ORDER BY m.at, m.conversation_id, m.seq

-- name: summaries_within
-- What for: what a tier has written of a conversation's run that overlaps a span of time. $1 tenant, $2 tier,
-- $3 conversation, $4 run, $5 from, $6 until (not included).
SELECT id, starts_at, ends_at, text FROM summaries
WHERE tenant_id = $1 AND tier = $2 AND conversation_id = $3 AND namespace = $4 AND starts_at < $6
      AND (ends_at > $5 OR starts_at >= $5)
ORDER BY starts_at, id

-- name: summary_insert
-- What for: store a summary. $1 tenant, $2 id, $3 conversation, $4 tier, $5 run, $6 user, $7 agent, $8 visibility,
-- $9 starts at, $10 ends at, $11 text, $12 tokens, $13 model, $14 now.
INSERT INTO summaries (tenant_id, id, conversation_id, tier, namespace, user_id, agent_id, visibility, starts_at, ends_at, text,
                       tokens, model, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT DO NOTHING

-- name: summaries_replace
-- What for: a summary that another one takes the place of, or that nothing is left of. Its lineage stays: prompts were made
-- from it, and forgetting has to find them. $1 tenant, $2 ids.
DELETE FROM summaries WHERE tenant_id = $1 AND id = ANY ($2::uuid[])
