-- name: recall_insert
-- Create episodes of messages, add items to the recall index with their postings, which have the same access columns,
-- and mark messages as indexed; existing episodes and items stay unchanged. `vendors` are JSON texts or NULL, `lengths`
-- are in terms, `postings` are JSON texts: counts by term. A long text has a row for each passage: its number (`parts`),
-- and where it begins and how long it is, in characters of the whole text (`chars` NULL: all of it).
WITH episode AS (
    INSERT INTO episodes (tenant_id, id, message_id)
    SELECT :tenant_id, * FROM unnest(:episode_ids::uuid[], :message_ids::uuid[])
    ON CONFLICT DO NOTHING
), done AS (
    UPDATE messages SET indexed = true, skipped = NULL WHERE tenant_id = :tenant_id AND id = ANY (:done::uuid[])
), new AS MATERIALIZED (
    SELECT * FROM unnest(:ids::uuid[], :kinds::text[], :namespaces::text[], :user_ids::uuid[], :visibilities::text[],
                         :vendors::text[], :at::timestamptz[], :expires_at::timestamptz[], :lengths::int[],
                         :postings::text[], :parts::smallint[], :starts::int[], :chars::int[])
         AS n (id, kind, namespace, user_id, visibility, vendors, at, expires_at, length, postings, part, start, chars)
), added AS (
    INSERT INTO recall_index (tenant_id, id, kind, namespace, user_id, visibility, vendors, at, expires_at, length,
                              part, start, chars)
    SELECT :tenant_id, id, kind, namespace, user_id, visibility,
           CASE WHEN vendors IS NULL THEN NULL ELSE ARRAY(SELECT jsonb_array_elements_text(vendors::jsonb)) END,
           at, expires_at, length, part, start, chars
    FROM new
    ON CONFLICT DO NOTHING
    RETURNING id, part, namespace, visibility, user_id, vendors, at, expires_at, length
)
INSERT INTO recall_terms (tenant_id, namespace, term, item_id, part, tf, length, visibility, user_id, vendors, at, expires_at)
SELECT :tenant_id, added.namespace, posting.key, added.id, added.part, posting.value::smallint, added.length, added.visibility,
       added.user_id, added.vendors, added.at, added.expires_at
FROM added JOIN new USING (id, part) CROSS JOIN json_each_text(new.postings::json) AS posting

-- name: recall_delete
-- Remove items from the recall index. Their postings are deleted with them.
DELETE FROM recall_index WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])

-- name: indexing_waiting
-- What a tenant has waiting: ephemeral messages whose turns are finished, messages to index, items to embed. It sets its
-- tenant itself, as api_key_find does.
SELECT found.*
FROM (SELECT set_config('nexus.tenant', :tenant_id::uuid::text, true) AS tenant OFFSET 0) AS within
CROSS JOIN LATERAL (
    SELECT EXISTS (SELECT FROM messages AS m
                   WHERE m.tenant_id = within.tenant::uuid AND m.ephemeral
                         AND NOT EXISTS (SELECT FROM turns AS t
                                         WHERE t.tenant_id = within.tenant::uuid AND t.state <> 'sent'
                                               AND (t.message_id = m.id OR t.reply_id = m.id))) AS answered,
           EXISTS (SELECT FROM messages WHERE tenant_id = within.tenant::uuid AND NOT indexed) AS messages,
           EXISTS (SELECT FROM recall_index WHERE tenant_id = within.tenant::uuid AND embedding IS NULL) AS items
) AS found

-- name: recall_unembedded
-- List passages without a vector, of some namespaces (NULL: of all), with the text to embed and the version of their row:
-- the latest first, so that nobody's import keeps back what is said meanwhile.
-- It sets its tenant itself, as api_key_find does.
SELECT found.*
FROM (SELECT set_config('nexus.tenant', :tenant_id::uuid::text, true) AS tenant OFFSET 0) AS within
CROSS JOIN LATERAL (
    SELECT r.id, r.part, r.version,
           substr(coalesce(message_words(m.text, m.attachments), memory.text, s.text, ''), r.start + 1,
                  coalesce(r.chars, 1000000)) AS text
    FROM (
        SELECT id, part, start, chars, kind, xmin::text AS version FROM recall_index
        WHERE tenant_id = within.tenant::uuid AND embedding IS NULL
              AND (:namespaces::text[] IS NULL OR namespace = ANY (:namespaces::text[]))
        ORDER BY at DESC, id DESC, part DESC
        LIMIT :limit
    ) AS r
    LEFT JOIN episodes AS e ON r.kind = 'episode' AND e.tenant_id = within.tenant::uuid AND e.id = r.id
    LEFT JOIN messages AS m ON m.tenant_id = within.tenant::uuid AND m.id = e.message_id
    LEFT JOIN memories AS memory ON r.kind = 'memory' AND memory.tenant_id = within.tenant::uuid AND memory.id = r.id
    LEFT JOIN summaries AS s ON r.kind = 'summary' AND s.tenant_id = within.tenant::uuid AND s.id = r.id
    OFFSET 0
) AS found

-- name: recall_store_vectors
-- Store vectors, except of rows that changed since their text was read: the text may have been edited or erased. None is
-- stored unless the stored vectors belong to this embedder, which stays so until the transaction ends.
WITH embedder AS MATERIALIZED (
    SELECT value = :embedder::jsonb AS is_current FROM deployment WHERE key = 'embedder' FOR SHARE
), stored AS (
    UPDATE recall_index AS r
    SET embedding = new.embedding
    FROM unnest(:ids::uuid[], :parts::smallint[], :versions::text[], :vectors::vector[]) AS new (id, part, version, embedding)
    WHERE (SELECT is_current FROM embedder)
          AND r.tenant_id = :tenant_id AND r.id = new.id AND r.part = new.part AND r.xmin::text = new.version
    RETURNING r.id, r.part
)
SELECT (SELECT is_current FROM embedder) AS is_current, ARRAY(SELECT (id, part) FROM stored) AS passages
