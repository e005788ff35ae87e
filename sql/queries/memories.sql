-- name: memories_insert
-- Add memories; existing ones stay unchanged.
INSERT INTO memories (tenant_id, id, namespace, user_id, agent_id, visibility, kind, key, text, author, origin,
                      created_at,
                      expires_at, trust)
SELECT :tenant_id, * FROM unnest(:ids::uuid[], :namespaces::text[], :user_ids::uuid[], :agent_ids::uuid[],
                         :visibilities::text[], :kinds::text[], :keys::text[], :texts::text[],
                         :authors::text[], :origins::text[], :created_at::timestamptz[], :expires_at::timestamptz[],
                         :trusts::text[])
ON CONFLICT DO NOTHING
RETURNING id

-- name: memories_known
-- List which of these memories exist, oldest first, each with whether it is an extracted one that is neither deleted
-- nor merged.
SELECT id, origin = 'extracted' AND trashed_at IS NULL AND merged_into IS NULL AS extracted FROM memories
WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
ORDER BY created_at, id

-- name: memories_comparable
-- Find the extracted memories of one scope that share a term with new statements of the same scope, in any wording,
-- current or superseded.
SELECT m.id, m.kind, m.text, m.created_at AS at, m.valid_to AS until,
       (SELECT count(*) FROM lineage AS l WHERE l.tenant_id = :tenant_id AND l.item_id = m.id
           AND l.source_kind = 'message') AS stated,
       ARRAY(SELECT merged.text FROM memories AS merged WHERE merged.tenant_id = :tenant_id AND merged.merged_into = m.id
           ORDER BY merged.created_at, merged.id) AS also
FROM memories AS m
WHERE m.tenant_id = :tenant_id AND m.namespace = :namespace AND m.visibility = :visibility AND m.user_id = :user_id
      AND m.origin = 'extracted'
      AND m.trashed_at IS NULL AND m.merged_into IS NULL
      AND (EXISTS (SELECT FROM recall_terms AS t WHERE t.tenant_id = :tenant_id AND t.item_id = m.id
           AND t.term = ANY (:terms::text[]))
           OR EXISTS (SELECT FROM memories AS merged JOIN recall_terms AS t ON t.tenant_id = :tenant_id AND t.item_id = merged.id
                      WHERE merged.tenant_id = :tenant_id AND merged.merged_into = m.id AND t.term = ANY (:terms::text[])))
ORDER BY m.created_at, m.id

-- name: memories_similar
-- Find a memory and the memories of the same scope and kind with at least the `minimum` cosine similarity. The search
-- is exact, so no row of another scope affects the result.
SELECT o.id, o.kind, o.text, o.created_at AS at, o.valid_to AS until, o.superseded_by,
       (SELECT count(*) FROM lineage AS l WHERE l.tenant_id = :tenant_id AND l.item_id = o.id
           AND l.source_kind = 'message') AS stated,
       ARRAY[]::text[] AS also, 1 - (other_entry.embedding <=> memory_entry.embedding) AS cosine
FROM memories AS m
JOIN recall_index AS memory_entry ON memory_entry.tenant_id = :tenant_id AND memory_entry.id = m.id AND memory_entry.part = 1
JOIN memories AS o ON o.tenant_id = :tenant_id AND o.namespace = m.namespace AND o.visibility = m.visibility
                      AND o.user_id = m.user_id
                      AND o.kind = m.kind AND o.origin = 'extracted' AND o.trashed_at IS NULL
JOIN recall_index AS other_entry ON other_entry.tenant_id = :tenant_id AND other_entry.id = o.id AND other_entry.part = 1
WHERE m.tenant_id = :tenant_id AND m.id = :id AND m.merged_into IS NULL AND o.merged_into IS NULL
      AND (o.id = m.id OR 1 - (other_entry.embedding <=> memory_entry.embedding) >= :minimum)
ORDER BY o.created_at, o.id

-- name: memories_merge
-- Merge one memory, and everything merged into it, into another, which gets all its messages. The merged one is
-- recorded as made from the other, so that forgetting the other erases it too. Its proposed landmark is deleted.
WITH merged AS (
    UPDATE memories SET merged_into = :kept_id, superseded_by = NULL, valid_to = NULL
    WHERE tenant_id = :tenant_id AND (id = :merged_id OR merged_into = :merged_id) RETURNING id, created_at
), links AS (
    INSERT INTO lineage (tenant_id, item_kind, item_id, source_kind, source_id)
    SELECT DISTINCT :tenant_id, 'memory', :kept_id::uuid, l.source_kind, l.source_id
    FROM lineage AS l WHERE l.tenant_id = :tenant_id AND l.item_id = :merged_id AND l.source_id <> :kept_id
    UNION ALL
    SELECT :tenant_id, 'memory', id, 'memory', :kept_id::uuid FROM merged
    ON CONFLICT DO NOTHING
), proposed AS (
    DELETE FROM landmarks WHERE tenant_id = :tenant_id AND id = :landmark_id AND state = 'proposed'
), found AS (
    UPDATE recall_index AS r SET expires_at = merged.created_at FROM merged WHERE r.tenant_id = :tenant_id
        AND r.id = merged.id
)
UPDATE recall_terms AS t SET expires_at = merged.created_at FROM merged WHERE t.tenant_id = :tenant_id
    AND t.item_id = merged.id

-- name: memories_moved
-- Get the texts of the memories made from a message that their owner has filed elsewhere.
SELECT m.id, m.text FROM lineage AS l
JOIN messages AS s ON s.tenant_id = :tenant_id AND s.id = l.source_id
JOIN memories AS m ON m.tenant_id = :tenant_id AND m.id = l.item_id
     AND (m.namespace, m.visibility) <> (s.namespace, s.visibility)
WHERE l.tenant_id = :tenant_id AND l.source_id = :message_id AND l.item_kind = 'memory'

-- name: memories_merged
-- List the memories that were merged into these.
SELECT id FROM memories WHERE tenant_id = :tenant_id AND merged_into = ANY (:ids::uuid[])

-- name: memories_nearest
-- Find the extracted memories nearest to a vector in the same namespace and visibility and of the same author, so that
-- the extractor does not repeat them. Nothing is found when the stored vectors belong to another embedder.
SELECT m.id, m.text FROM recall_index AS r JOIN memories AS m ON m.tenant_id = :tenant_id AND m.id = r.id
WHERE r.tenant_id = :tenant_id AND r.namespace = :namespace AND r.visibility = :visibility AND r.kind = 'memory' AND r.part = 1
      AND m.namespace = :namespace AND m.visibility = :visibility
      AND m.user_id = :user_id AND r.embedding IS NOT NULL AND m.trashed_at IS NULL
      AND (SELECT value FROM deployment WHERE key = 'embedder') = :embedder::jsonb
      AND m.superseded_by IS NULL AND m.merged_into IS NULL AND m.origin = 'extracted'
ORDER BY r.embedding <=> :vector::vector, m.id
LIMIT :limit

-- name: memories_restate
-- Record that a memory was stated again: it counts from its first statement and expires with its last.
WITH changed AS (
    UPDATE memories SET created_at = least(created_at, :stated_at), expires_at = greatest(expires_at, :expires_at)
    WHERE tenant_id = :tenant_id AND id = :id RETURNING id, created_at, least(expires_at, valid_to) AS ends
), found AS (
    UPDATE recall_index AS r SET at = changed.created_at, expires_at = changed.ends
    FROM changed WHERE r.tenant_id = :tenant_id AND r.id = changed.id
)
UPDATE recall_terms AS t SET at = changed.created_at, expires_at = changed.ends
FROM changed WHERE t.tenant_id = :tenant_id AND t.item_id = changed.id

-- name: memories_supersede
-- Supersede memories by a newer one from a time on. They remain as history.
WITH changed AS (
    UPDATE memories SET superseded_by = :new_id, valid_to = :at
    WHERE tenant_id = :tenant_id AND id = ANY (:old_ids::uuid[]) AND id <> :new_id RETURNING id, least(expires_at,
          valid_to) AS ends
), found AS (
    UPDATE recall_index AS r SET expires_at = changed.ends FROM changed WHERE r.tenant_id = :tenant_id
        AND r.id = changed.id
)
UPDATE recall_terms AS t SET expires_at = changed.ends FROM changed WHERE t.tenant_id = :tenant_id
    AND t.item_id = changed.id

-- name: memories_reinstate
-- Before memories are erased, make what they superseded current again, or superseded by what had superseded them: as if
-- they had never existed.
WITH RECURSIVE chain (id, next, ends) AS (
    SELECT id, superseded_by, valid_to FROM memories
    WHERE tenant_id = :tenant_id AND superseded_by = ANY (:ids::uuid[]) AND NOT id = ANY (:ids::uuid[])
    UNION ALL
    SELECT c.id, m.superseded_by, m.valid_to
    FROM chain AS c JOIN memories AS m ON m.tenant_id = :tenant_id AND m.id = c.next
    WHERE c.next = ANY (:ids::uuid[])
), changed AS (
    UPDATE memories AS m SET superseded_by = c.next, valid_to = c.ends
    FROM chain AS c
    WHERE m.tenant_id = :tenant_id AND m.id = c.id AND (c.next IS NULL OR NOT c.next = ANY (:ids::uuid[]))
    RETURNING m.id, least(m.expires_at, m.valid_to) AS ends
), found AS (
    UPDATE recall_index AS r SET expires_at = changed.ends FROM changed WHERE r.tenant_id = :tenant_id
        AND r.id = changed.id
)
UPDATE recall_terms AS t SET expires_at = changed.ends FROM changed WHERE t.tenant_id = :tenant_id
    AND t.item_id = changed.id

-- name: memories_reindex_sources
-- Index the remaining messages of erased memories again, so that the memories are made anew without the erased
-- messages.
UPDATE messages SET indexed = false
WHERE tenant_id = :tenant_id AND NOT ephemeral AND NOT id = ANY (:message_ids::uuid[])
      AND id IN (SELECT source_id FROM lineage WHERE tenant_id = :tenant_id AND item_id = ANY (:memory_ids::uuid[])
          AND source_kind IN ('message', 'shown'))

-- name: memories_superseded
-- Find readable memories that were superseded, latest first, each with its successor where that is readable too.
SELECT m.id, m.namespace, m.visibility, m.user_id, m.allowed_vendors, m.kind, m.text, m.author, m.created_at,
       m.valid_to,
       n.text AS newer, n.namespace AS newer_namespace, n.visibility AS newer_visibility, n.user_id AS newer_user_id,
       n.allowed_vendors AS newer_vendors
FROM memories AS m
LEFT JOIN memories AS n ON n.tenant_id = :tenant_id AND n.id = m.superseded_by AND n.namespace = m.namespace
     AND n.visibility = m.visibility AND n.user_id = m.user_id AND n.trashed_at IS NULL
     AND may_read(n.namespace, n.visibility, n.user_id, n.allowed_vendors, :pooled::text[], :visibilities::text[],
         :readers::uuid[], :vendor)
WHERE m.tenant_id = :tenant_id AND m.namespace = ANY (:namespaces::text[])
      AND may_read(m.namespace, m.visibility, m.user_id, m.allowed_vendors, :pooled::text[], :visibilities::text[],
          :readers::uuid[], :vendor)
      AND m.superseded_by IS NOT NULL AND m.valid_to <= :at AND m.trashed_at IS NULL
      AND EXISTS (SELECT FROM recall_terms AS t WHERE t.tenant_id = :tenant_id AND t.item_id = m.id
          AND t.term = ANY (:terms::text[]))
ORDER BY m.valid_to DESC, m.id
LIMIT :limit
