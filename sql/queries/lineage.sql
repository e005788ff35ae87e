-- name: lineage_closure
-- Find everything made from these sources, over any number of steps: also the turns whose prompts had any of it, and the
-- answers that are made of it (by the id of their message). It does not go on from these.
WITH RECURSIVE derived (kind, id) AS (
    SELECT l.item_kind, l.item_id FROM lineage AS l WHERE l.tenant_id = :tenant_id
        AND l.source_id = ANY (:source_ids::uuid[])
    UNION
    SELECT l.item_kind, l.item_id FROM lineage AS l JOIN derived AS d ON l.tenant_id = :tenant_id
        AND l.source_id = d.id AND d.kind NOT IN ('turn', 'answer')
)
SELECT kind, id FROM derived

-- name: lineage_sources
-- List what items and turns were made from, in one step.
SELECT item_id, source_kind, source_id FROM lineage
WHERE tenant_id = :tenant_id AND item_id = ANY (:item_ids::uuid[])

-- name: erase_traces
-- Delete lineage rows of these items and sources, and that tools read them, take them out of what the gateway has put into requests,
-- and let every process empty what it keeps in memory (composer/text/caches.py).
WITH injected AS (
    UPDATE gateway_turns
    SET standing = ARRAY(SELECT s.id FROM unnest(standing) WITH ORDINALITY AS s (id, place)
                         WHERE s.id <> ALL (:ids::uuid[]) ORDER BY s.place),
        recalled = ARRAY(SELECT r.id FROM unnest(recalled) WITH ORDINALITY AS r (id, place)
                         WHERE r.id <> ALL (:ids::uuid[]) ORDER BY r.place)
    WHERE tenant_id = :tenant_id AND (standing && :ids::uuid[] OR recalled && :ids::uuid[])
), reads AS (
    DELETE FROM tool_reads WHERE tenant_id = :tenant_id AND item_id = ANY (:ids::uuid[])
), traces AS (
    DELETE FROM lineage
    WHERE tenant_id = :tenant_id AND (item_id = ANY (:ids::uuid[]) OR source_id = ANY (:ids::uuid[]))
)
SELECT pg_notify('turns', 'erased')

-- part: used_times
-- When each item was last used in an answer to a question of one of `user_ids`, for statements that include this one and are
-- sorted `by` that; else nothing.
SELECT l.source_id AS id, max(t.answered_at) AS at
FROM messages AS q
JOIN turns AS t ON t.tenant_id = :tenant_id AND t.message_id = q.id AND t.answered_at IS NOT NULL
JOIN lineage AS l ON l.tenant_id = :tenant_id AND l.item_id = t.id AND l.item_kind = 'turn'
WHERE :by::text = 'used' AND q.tenant_id = :tenant_id AND q.user_id = ANY (:user_ids::uuid[]) AND NOT q.ephemeral
GROUP BY l.source_id

-- name: lineage_insert
-- Record which sources items were made from.
INSERT INTO lineage (tenant_id, item_kind, item_id, source_kind, source_id)
SELECT :tenant_id, * FROM unnest(:item_kinds::text[], :item_ids::uuid[], :source_kinds::text[], :source_ids::uuid[])
ON CONFLICT DO NOTHING
