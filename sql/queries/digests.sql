-- name: digest_set
-- Let the digest of a room be posted, for the first time when it is due; NULL: none is posted any more.
UPDATE conversations SET digest_period = :period, digest_hour = :hour, digest_due_at = :due_at
WHERE tenant_id = :tenant_id AND id = :conversation_id

-- name: digest_get
-- Get the digest of a room.
SELECT id AS conversation_id, digest_period AS period, digest_hour AS hour, digest_due_at AS due_at, platform FROM conversations
WHERE tenant_id = :tenant_id AND id = :conversation_id AND digest_due_at IS NOT NULL

-- name: digest_take_due
-- Lock the earliest digest that is due where this process delivers (`served`, see turns_unowned) and that no other one is
-- posting, but for some.
-- With `position_id` (the terminal) only that of one room.
SELECT c.id AS conversation_id, c.digest_period AS period, c.digest_hour AS hour, c.digest_due_at AS due_at, c.platform
FROM conversations AS c
WHERE c.tenant_id = :tenant_id AND c.digest_due_at <= :now
      AND ARRAY[c.platform, c.platform || ':' || c.workspace] && :served::text[]
      AND NOT c.id = ANY (:excluded_ids::uuid[])
      AND (:position_id::uuid IS NULL OR c.id = :position_id)
ORDER BY c.digest_due_at, c.id
LIMIT 1
FOR NO KEY UPDATE SKIP LOCKED

-- name: summaries_awaited
-- Check whether these tiers have yet to summarise something of a conversation's namespace within a span of time.
SELECT EXISTS (SELECT FROM summaries_due
               WHERE tenant_id = :tenant_id AND tier = ANY (:tiers::text[]) AND conversation_id = :conversation_id
                     AND namespace = :namespace AND quarter >= :since AND quarter < :until)

-- name: summaries_readable
-- Get the summaries of a conversation that one viewer may read, of one tier and within a span of time, oldest first.
SELECT id, namespace, visibility, user_id, starts_at, ends_at, text FROM summaries
WHERE tenant_id = :tenant_id AND conversation_id = :conversation_id AND tier = :tier
      AND starts_at >= :since AND ends_at <= :until AND namespace = ANY (:namespaces::text[])
      AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[], :vendor)
ORDER BY starts_at, id

-- name: messages_since
-- Get the latest of people's messages in a room with its public threads after a time, and (`until`) before another one, as far
-- as one viewer may read them, newest first, with their places on the platform.
SELECT m.id, m.external_id, m.seq, m.at, m.user_id, m.agent_id, m.author, m.text, m.attachments, m.mentions, m.namespace,
       m.visibility, m.edited_at, c.platform, c.workspace, c.kind, coalesce(r.name, c.name) AS name, c.thread,
       coalesce(r.id, c.id) AS room_id, coalesce(r.private, c.private) AS private
FROM conversations AS c
LEFT JOIN conversations AS r ON r.tenant_id = :tenant_id AND r.id = c.room_id
JOIN messages AS m ON m.tenant_id = :tenant_id AND m.conversation_id = c.id
JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = m.user_id AND NOT u.opted_out
WHERE c.tenant_id = :tenant_id AND (c.id = :room_id OR c.room_id = :room_id) AND m.at > :since
      AND m.at < coalesce(:until::timestamptz, 'infinity')
      AND NOT m.ephemeral AND m.agent_id IS NULL AND m.namespace = ANY (:namespaces::text[])
      AND may_read(m.namespace, m.visibility, m.user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[], :vendor)
ORDER BY m.at DESC, m.seq DESC
LIMIT :limit

-- name: messages_last_own
-- Get the time of the last message that a person wrote in a room or its public threads, in its present namespace.
SELECT max(m.at) FROM conversations AS c JOIN messages AS m ON m.tenant_id = :tenant_id AND m.conversation_id = c.id
WHERE c.tenant_id = :tenant_id AND (c.id = :room_id OR c.room_id = :room_id)
      AND m.user_id = ANY (:user_ids::uuid[]) AND m.agent_id IS NULL AND m.namespace = :namespace
