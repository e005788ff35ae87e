-- name: recall_insert
-- Add items to the recall index; existing ones stay unchanged. `vendors` are JSON texts or NULL, `lengths` are in
-- terms.
INSERT INTO recall_index (tenant_id, id, kind, namespace, user_id, visibility, vendors, at, expires_at, length)
SELECT :tenant_id, id, kind, namespace, user_id, visibility,
       CASE WHEN vendors IS NULL THEN NULL ELSE ARRAY(SELECT jsonb_array_elements_text(vendors::jsonb)) END,
       at, expires_at, length
FROM unnest(:ids::uuid[], :kinds::text[], :namespaces::text[], :user_ids::uuid[], :visibilities::text[],
            :vendors::text[], :at::timestamptz[], :expires_at::timestamptz[],
            :lengths::int[]) AS new (id, kind, namespace, user_id, visibility, vendors, at, expires_at, length)
ON CONFLICT DO NOTHING
RETURNING id

-- name: recall_terms_insert
-- Add the postings of newly indexed items. Their access columns are copied from the index.
INSERT INTO recall_terms (tenant_id, namespace, term, item_id, tf, length, visibility, user_id, vendors, at, expires_at)
SELECT :tenant_id, r.namespace, new.term, r.id, new.tf, r.length, r.visibility, r.user_id, r.vendors, r.at, r.expires_at
FROM unnest(:item_ids::uuid[], :terms::text[], :counts::smallint[]) AS new (id, term, tf)
JOIN recall_index AS r ON r.tenant_id = :tenant_id AND r.id = new.id

-- name: recall_delete
-- Remove items from the recall index. Their postings are deleted with them.
DELETE FROM recall_index WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])

-- name: episodes_insert
-- Create episodes of messages.
INSERT INTO episodes (tenant_id, id, message_id) SELECT :tenant_id, * FROM unnest(:ids::uuid[],
    :message_ids::uuid[]) ON CONFLICT DO NOTHING

-- name: recall_unembedded
-- List items without a vector, with the text to embed and the version of their row.
SELECT r.id, r.version, coalesce(m.text, memory.text, s.text, '') AS text
FROM (
    SELECT id, kind, xmin::text AS version FROM recall_index
    WHERE tenant_id = :tenant_id AND embedding IS NULL
    ORDER BY at, id
    LIMIT :limit
) AS r
LEFT JOIN episodes AS e ON r.kind = 'episode' AND e.tenant_id = :tenant_id AND e.id = r.id
LEFT JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = e.message_id
LEFT JOIN memories AS memory ON r.kind = 'memory' AND memory.tenant_id = :tenant_id AND memory.id = r.id
LEFT JOIN summaries AS s ON r.kind = 'summary' AND s.tenant_id = :tenant_id AND s.id = r.id

-- name: recall_store_vectors
-- Store vectors, except of rows that changed since their text was read: the text may have been edited or erased.
UPDATE recall_index AS r
SET embedding = new.embedding
FROM unnest(:ids::uuid[], :versions::text[], :vectors::vector[]) AS new (id, version, embedding)
WHERE r.tenant_id = :tenant_id AND r.id = new.id AND r.xmin::text = new.version
RETURNING r.id

-- name: recall_backlog
-- Count messages to index and items to embed.
SELECT (SELECT count(*) FROM messages WHERE tenant_id = :tenant_id AND NOT indexed) AS unindexed,
       (SELECT count(*) FROM recall_index WHERE tenant_id = :tenant_id AND embedding IS NULL) AS unembedded
