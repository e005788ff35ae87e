-- name: embedder_held
-- What for: whether vectors of an embedder may be stored; until this transaction ends it stays so. $1 embedder.
SELECT value = $1::jsonb FROM deployment WHERE key = 'embedder' FOR SHARE

-- name: reembed_lock
-- What for: one process re-embeds at a time; the lock goes with its connection. $1 key.
SELECT pg_try_advisory_lock($1)

-- name: reembed_running
-- What for: whether a process has that lock. $1 key.
SELECT EXISTS (SELECT FROM pg_locks
               WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint << 32 | objid::bigint = $1
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))

-- name: reembed_waiting
-- What for: the next items without a vector of the new embedder, with the text to embed and the row's version.
-- $1 tenant, $2 after which id, $3 how many.
SELECT r.id, r.version, coalesce(m.text, y.text, s.text, '') AS text
FROM (
    SELECT id, kind, xmin::text AS version FROM recall_index AS r
    WHERE tenant_id = $1 AND id > $2
          AND NOT EXISTS (SELECT FROM reembedded AS n WHERE n.tenant_id = $1 AND n.id = r.id)
    ORDER BY id
    LIMIT $3
) AS r
LEFT JOIN episodes AS e ON r.kind = 'episode' AND e.tenant_id = $1 AND e.id = r.id
LEFT JOIN messages AS m ON m.tenant_id = $1 AND m.id = e.message_id
LEFT JOIN memories AS y ON r.kind = 'memory' AND y.tenant_id = $1 AND y.id = r.id
LEFT JOIN summaries AS s ON r.kind = 'summary' AND s.tenant_id = $1 AND s.id = r.id
ORDER BY r.id

-- name: reembed_store
-- What for: put vectors beside the ones in use, but for rows that have changed since their text was read: what was said there
-- may have been edited or forgotten. $1 tenant, $2 ids, $3 versions, $4 vectors.
INSERT INTO reembedded (tenant_id, id, embedding)
SELECT $1, r.id, new.embedding
FROM unnest($2::uuid[], $3::text[], $4::vector[]) AS new (id, version, embedding)
JOIN recall_index AS r ON r.tenant_id = $1 AND r.id = new.id AND r.xmin::text = new.version
FOR KEY SHARE OF r
ON CONFLICT DO NOTHING

-- name: reembed_count
-- What for: how far it is. $1 tenant.
SELECT (SELECT count(*) FROM reembedded WHERE tenant_id = $1) AS prepared,
       (SELECT count(*) FROM recall_index WHERE tenant_id = $1) AS items

-- name: reembed_clear
-- What for: vectors of an embedder that is no longer wanted, or that are in use now. $1 tenant.
DELETE FROM reembedded WHERE tenant_id = $1

-- name: reembed_switch
-- What for: the new vectors take the place of the old ones. $1 tenant.
UPDATE recall_index AS r SET embedding = n.embedding
FROM reembedded AS n
WHERE r.tenant_id = $1 AND n.tenant_id = $1 AND n.id = r.id

-- name: reembed_unprepared
-- What for: what has no new vector is to be embedded like something new. $1 tenant.
UPDATE recall_index AS r SET embedding = NULL
WHERE r.tenant_id = $1 AND r.embedding IS NOT NULL
      AND NOT EXISTS (SELECT FROM reembedded AS n WHERE n.tenant_id = $1 AND n.id = r.id)

-- name: embedder_switch
-- What for: from now on, stored vectors are of another embedder. $1 the new one, $2 the one before; nothing if that has changed.
UPDATE deployment SET value = $1 WHERE key = 'embedder' AND value = $2::jsonb RETURNING key

-- name: deployment_delete
-- What for: it is no longer so. $1 key.
DELETE FROM deployment WHERE key = $1
