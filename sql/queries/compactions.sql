-- name: compaction_insert
-- Store a compaction, unless one was stored meanwhile that was made from at least as many messages.
INSERT INTO compactions (
    tenant_id, id, conversation_id, agent_id, namespace, user_id, visibility, through_at, through_seq, made_at,
        made_seq,
    messages, text, tokens, model, before_tokens, after_tokens, requested, created_at)
SELECT :tenant_id, :id, :conversation_id, :agent_id, :namespace, :user_id, :visibility, :through_at, :through_seq,
    :made_at, :made_seq, :messages, :text, :tokens, :model, :before_tokens, :after_tokens, :requested, :created_at
WHERE NOT EXISTS (
    SELECT FROM compactions AS c
    WHERE c.tenant_id = :tenant_id AND c.conversation_id = :conversation_id AND c.agent_id = :agent_id
          AND c.namespace = :namespace AND (c.made_at, c.made_seq) >= (:made_at, :made_seq))
ON CONFLICT DO NOTHING RETURNING id
