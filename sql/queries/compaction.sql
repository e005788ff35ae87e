-- name: compaction_insert
-- What for: keep one, if no other was made from as much meanwhile. $1 tenant, $2 id, $3 conversation, $4 agent, $5 run,
-- $6 user, $7 visibility, $8 and $9 through (time, seq), $10 and $11 made (time, seq), $12 messages, $13 text, $14 tokens,
-- $15 model, $16 before, $17 after, $18 requested, $19 now.
INSERT INTO compactions (
    tenant_id, id, conversation_id, agent_id, namespace, user_id, visibility, through_at, through_seq, made_at, made_seq,
    messages, text, tokens, model, before_tokens, after_tokens, requested, created_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19
WHERE NOT EXISTS (
    SELECT FROM compactions AS c
    WHERE c.tenant_id = $1 AND c.conversation_id = $3 AND c.agent_id = $4 AND c.namespace = $5 AND (c.made_at, c.made_seq) >= ($10, $11))
ON CONFLICT DO NOTHING RETURNING id

-- name: compaction_sources
-- What for: whether what a compaction was made from still stands as it was read. $1 tenant, $2 message ids.
SELECT id, text FROM messages WHERE tenant_id = $1 AND id = ANY ($2::uuid[])

-- name: erase_compactions
-- What for: the next turn makes them again from what is left. $1 tenant, $2 ids.
DELETE FROM compactions WHERE tenant_id = $1 AND id = ANY ($2::uuid[]) RETURNING id
