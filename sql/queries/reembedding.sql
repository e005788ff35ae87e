-- name: reembed_lock
-- Try to take the lock that lets one process re-embed. It is released with its connection.
SELECT pg_try_advisory_lock(:key)

-- name: reembed_running
-- Check whether a process holds the re-embedding lock.
SELECT EXISTS (SELECT FROM pg_locks
               WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint << 32 | objid::bigint = :key
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))

-- name: reembed_pending
-- List passages by id and part without a vector of the next embedder, with the text to embed and the version of their row.
SELECT r.id, r.part, r.version,
       substr(coalesce(message_words(m.text, m.attachments), memory.text, s.text, ''), r.start + 1,
              coalesce(r.chars, 1000000)) AS text
FROM (
    SELECT id, part, start, chars, kind, xmin::text AS version FROM recall_index AS r
    WHERE tenant_id = :tenant_id AND (id, part) > (:after, :after_part::smallint)
          AND NOT EXISTS (SELECT FROM reembedded AS n WHERE n.tenant_id = :tenant_id AND n.id = r.id AND n.part = r.part)
    ORDER BY id, part
    LIMIT :limit
) AS r
LEFT JOIN episodes AS e ON r.kind = 'episode' AND e.tenant_id = :tenant_id AND e.id = r.id
LEFT JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = e.message_id
LEFT JOIN memories AS memory ON r.kind = 'memory' AND memory.tenant_id = :tenant_id AND memory.id = r.id
LEFT JOIN summaries AS s ON r.kind = 'summary' AND s.tenant_id = :tenant_id AND s.id = r.id
ORDER BY r.id, r.part

-- name: reembed_store
-- Store vectors beside those in use, except of rows that changed since their text was read: the text may have been
-- edited or erased.
INSERT INTO reembedded (tenant_id, id, part, embedding)
SELECT :tenant_id, r.id, r.part, new.embedding
FROM unnest(:ids::uuid[], :parts::smallint[], :versions::text[], :vectors::vector[]) AS new (id, part, version, embedding)
JOIN recall_index AS r ON r.tenant_id = :tenant_id AND r.id = new.id AND r.part = new.part AND r.xmin::text = new.version
FOR KEY SHARE OF r
ON CONFLICT DO NOTHING

-- name: reembed_count
-- Count prepared vectors and indexed items.
SELECT (SELECT count(*) FROM reembedded WHERE tenant_id = :tenant_id) AS prepared,
       (SELECT count(*) FROM recall_index WHERE tenant_id = :tenant_id) AS items

-- name: reembed_clear
-- Delete prepared vectors that are no longer needed, or are in use now.
DELETE FROM reembedded WHERE tenant_id = :tenant_id

-- name: reembed_switch
-- Replace the vectors in use by the prepared ones. Items without one lose theirs, so that they are embedded like new items.
UPDATE recall_index AS r SET embedding = n.embedding
FROM recall_index AS i LEFT JOIN reembedded AS n ON n.tenant_id = :tenant_id AND n.id = i.id AND n.part = i.part
WHERE r.tenant_id = :tenant_id AND i.tenant_id = :tenant_id AND i.id = r.id AND i.part = r.part
      AND (n.id IS NOT NULL OR r.embedding IS NOT NULL)

-- name: embedder_switch
-- Replace the embedder of the stored vectors; no row when `old` is not the present one.
UPDATE deployment SET value = :new WHERE key = 'embedder' AND value = :old::jsonb RETURNING key
