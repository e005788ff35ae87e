-- name: sources_readable
-- Find which of these memories, facts, landmarks and open reminders a viewer may read as they are filed now. Of `rooms`,
-- which somebody opened to their DM, memories alone are read.
SELECT id, namespace, visibility, user_id, allowed_vendors AS vendors FROM memories
WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) AND namespace = ANY (:namespaces::text[])
      AND may_read(namespace, visibility, user_id, allowed_vendors, :pooled::text[], :visibilities::text[],
          :readers::uuid[], :vendor, :rooms::text[])
      AND trashed_at IS NULL
UNION ALL
SELECT id, namespace, visibility, user_id, NULL FROM facts
WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) AND namespace = ANY (:namespaces::text[])
      AND namespace <> ALL (:rooms::text[])
      AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[],
          :vendor)
UNION ALL
SELECT id, namespace, visibility, user_id, NULL FROM landmarks
WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) AND namespace = ANY (:namespaces::text[])
      AND namespace <> ALL (:rooms::text[])
      AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[],
          :vendor)
UNION ALL
SELECT id, namespace, visibility, user_id, NULL FROM reminders
WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) AND namespace = ANY (:namespaces::text[])
      AND namespace <> ALL (:rooms::text[]) AND state = 'open'
      AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[],
          :vendor)

-- name: sources_messages
-- Find the readable messages that each of these sources is or was made from, with their place on the platform, latest
-- first, at most `limit` of each.
SELECT source.id AS source_id, m.external_id, m.namespace, m.visibility, m.user_id, c.kind, c.platform, c.workspace,
       coalesce(r.name, c.name) AS name, c.thread, coalesce(r.id, c.id) AS room_id, coalesce(r.private, c.private) AS private
FROM unnest(:ids::uuid[]) WITH ORDINALITY AS source (id, n)
CROSS JOIN LATERAL (
    SELECT message.id, message.external_id, message.namespace, message.visibility, message.user_id, message.conversation_id, message.at,
           message.seq
    FROM messages AS message
    WHERE message.tenant_id = :tenant_id AND message.agent_id IS NULL AND NOT message.ephemeral
          AND message.id IN (SELECT source.id
                          UNION SELECT e.message_id FROM episodes AS e WHERE e.tenant_id = :tenant_id AND e.id = source.id
                          UNION SELECT l.source_id FROM lineage AS l WHERE l.tenant_id = :tenant_id
                              AND l.item_id = source.id AND l.source_kind = 'message')
          AND message.namespace = ANY (:namespaces::text[])
          AND may_read(message.namespace, message.visibility, message.user_id, NULL, :pooled::text[], :visibilities::text[],
              :readers::uuid[], :vendor, :rooms::text[])
    ORDER BY message.at DESC, message.seq DESC
    LIMIT :limit
) AS m
JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = m.conversation_id
LEFT JOIN conversations AS r ON r.tenant_id = :tenant_id AND r.id = c.room_id
ORDER BY source.n, m.at DESC, m.seq DESC

-- name: sources_states
-- Get what became of the sources of an answer: whether each still exists, how it is filed, when it was made and last
-- changed (edited, superseded, ended, retired), and whether it was erased. No text is read.
SELECT s.id, found.id IS NOT NULL AS present, found.namespace, found.visibility, found.made_at, found.changed_at,
       EXISTS (SELECT FROM erased AS e WHERE e.tenant_id = :tenant_id AND e.id = s.id) AS erased
FROM unnest(:ids::uuid[]) AS s (id)
LEFT JOIN LATERAL (
    SELECT id, namespace, visibility, at AS made_at, edited_at AS changed_at FROM messages
    WHERE tenant_id = :tenant_id AND id = s.id
    UNION ALL
    SELECT e.id, m.namespace, m.visibility, m.at, m.edited_at
    FROM episodes AS e JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = e.message_id
    WHERE e.tenant_id = :tenant_id AND e.id = s.id
    UNION ALL
    SELECT id, namespace, visibility, created_at, valid_to FROM memories
    WHERE tenant_id = :tenant_id AND id = s.id AND trashed_at IS NULL
    UNION ALL
    SELECT id, namespace, visibility, valid_from, valid_to FROM facts WHERE tenant_id = :tenant_id AND id = s.id
    UNION ALL
    SELECT id, namespace, visibility, decided_at, retired_at FROM landmarks WHERE tenant_id = :tenant_id AND id = s.id
    UNION ALL
    SELECT id, namespace, visibility, made_at, posted_at FROM reminders WHERE tenant_id = :tenant_id AND id = s.id
    UNION ALL
    SELECT id, namespace, visibility, created_at, NULL FROM summaries WHERE tenant_id = :tenant_id AND id = s.id
    UNION ALL
    SELECT id, namespace, visibility, created_at, NULL FROM compactions WHERE tenant_id = :tenant_id AND id = s.id
    LIMIT 1
) AS found ON true

-- name: sources_uploaded
-- Find of these sources those that are or were made from a message that somebody uploaded, and who that was. No text is read.
SELECT DISTINCT s.id, i.uploaded_by
FROM unnest(:ids::uuid[]) AS s (id)
CROSS JOIN LATERAL (
    SELECT s.id AS message_id
    UNION SELECT e.message_id FROM episodes AS e WHERE e.tenant_id = :tenant_id AND e.id = s.id
    UNION SELECT l.source_id FROM lineage AS l WHERE l.tenant_id = :tenant_id AND l.item_id = s.id AND l.source_kind = 'message'
) AS made_from
JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = made_from.message_id AND m.import_id IS NOT NULL
JOIN imports AS i ON i.tenant_id = :tenant_id AND i.id = m.import_id AND i.uploaded_by IS NOT NULL

-- name: turn_sources_edited
-- Count the messages that an answer drew on or had in view and that were edited after it.
SELECT count(DISTINCT m.id) FROM turns AS t
JOIN lineage AS l ON l.tenant_id = :tenant_id AND l.item_id = t.id
LEFT JOIN episodes AS e ON e.tenant_id = :tenant_id AND e.id = l.source_id
JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = coalesce(e.message_id, l.source_id)
WHERE t.tenant_id = :tenant_id AND t.id = :turn_id AND m.edited_at > t.answered_at
