-- name: recall_insert
-- What for: make items findable by word, and by meaning once embedded; those that are already stay as they are. $1 tenant, then arrays: $2 id, $3 kind, $4 run, $5 user,
-- $6 visibility, $7 vendors as JSON text or NULL, $8 at, $9 expires at, $10 length in terms.
INSERT INTO recall_index (tenant_id, id, kind, namespace, user_id, visibility, vendors, at, expires_at, length)
SELECT $1, id, kind, namespace, user_id, visibility,
       CASE WHEN vendors IS NULL THEN NULL ELSE ARRAY(SELECT jsonb_array_elements_text(vendors::jsonb)) END,
       at, expires_at, length
FROM unnest($2::uuid[], $3::text[], $4::text[], $5::uuid[], $6::text[], $7::text[], $8::timestamptz[], $9::timestamptz[],
            $10::int[]) AS new (id, kind, namespace, user_id, visibility, vendors, at, expires_at, length)
ON CONFLICT DO NOTHING
RETURNING id

-- name: terms_insert
-- What for: the postings of items just made findable; marks are copied from them. $1 tenant, $2 items, $3 terms, $4 counts.
INSERT INTO recall_terms (tenant_id, namespace, term, item_id, tf, length, visibility, user_id, vendors, at, expires_at)
SELECT $1, r.namespace, new.term, r.id, new.tf, r.length, r.visibility, r.user_id, r.vendors, r.at, r.expires_at
FROM unnest($2::uuid[], $3::text[], $4::smallint[]) AS new (id, term, tf)
JOIN recall_index AS r ON r.tenant_id = $1 AND r.id = new.id

-- name: recall_delete
-- What for: take items out of recall; their postings go with them. $1 tenant, $2 ids.
DELETE FROM recall_index WHERE tenant_id = $1 AND id = ANY ($2::uuid[])

-- name: episodes_insert
-- What for: messages become episodes. $1 tenant, $2 ids, $3 messages.
INSERT INTO episodes (tenant_id, id, message_id) SELECT $1, * FROM unnest($2::uuid[], $3::uuid[]) ON CONFLICT DO NOTHING

-- name: recall_unembedded
-- What for: the next items without a vector, with the text to embed and the row's version. $1 tenant, $2 how many.
SELECT r.id, r.version, coalesce(m.text, y.text, s.text, '') AS text
FROM (
    SELECT id, kind, xmin::text AS version FROM recall_index
    WHERE tenant_id = $1 AND embedding IS NULL
    ORDER BY at, id
    LIMIT $2
) AS r
LEFT JOIN episodes AS e ON r.kind = 'episode' AND e.tenant_id = $1 AND e.id = r.id
LEFT JOIN messages AS m ON m.tenant_id = $1 AND m.id = e.message_id
LEFT JOIN memories AS y ON r.kind = 'memory' AND y.tenant_id = $1 AND y.id = r.id
LEFT JOIN summaries AS s ON r.kind = 'summary' AND s.tenant_id = $1 AND s.id = r.id

-- name: recall_embed
-- What for: store vectors, but of rows that have changed since their text was read: what was said there may have been edited
-- or forgotten. $1 tenant, $2 ids, $3 versions, $4 vectors.
UPDATE recall_index AS r
SET embedding = new.embedding
FROM unnest($2::uuid[], $3::text[], $4::vector[]) AS new (id, version, embedding)
WHERE r.tenant_id = $1 AND r.id = new.id AND r.xmin::text = new.version
RETURNING r.id

-- name: backlog
-- What for: how much is still to index and to embed. $1 tenant.
SELECT (SELECT count(*) FROM messages WHERE tenant_id = $1 AND NOT indexed) AS unindexed,
       (SELECT count(*) FROM recall_index WHERE tenant_id = $1 AND embedding IS NULL) AS unembedded

-- name: memories_insert
-- What for: remember statements. $1 tenant, then arrays: $2 id, $3 run, $4 user, $5 agent, $6 visibility, $7 kind, $8 key, $9 text,
-- $10 author, $11 origin, $12 created at, $13 expires at.
INSERT INTO memories (tenant_id, id, namespace, user_id, agent_id, visibility, kind, key, text, author, origin, created_at,
                      expires_at)
SELECT $1, * FROM unnest($2::uuid[], $3::text[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::text[],
                         $10::text[], $11::text[], $12::timestamptz[], $13::timestamptz[])
ON CONFLICT DO NOTHING
RETURNING id
