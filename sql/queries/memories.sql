-- name: memories_lock
-- What for: two indexers of one tenant do not judge statements of one scope side by side. $1 tenant.
SELECT pg_advisory_xact_lock(hashtextextended('memories:' || ($1::uuid)::text, 0))

-- name: memories_known
-- What for: which of these are stored already. $1 tenant, $2 ids.
SELECT id FROM memories WHERE tenant_id = $1 AND id = ANY ($2::uuid[])

-- name: memories_held
-- What for: what stands or stood in one scope and shares a word with new statements of that very scope, in any of its
-- wordings, to hold them against. $1 tenant, $2 run, $3 visibility, $4 owner, $5 terms.
SELECT m.id, m.kind, m.text, m.created_at, m.valid_to,
       (SELECT count(*) FROM lineage AS l WHERE l.tenant_id = $1 AND l.item_id = m.id AND l.source_kind = 'message') AS stated,
       ARRAY(SELECT w.text FROM memories AS w WHERE w.tenant_id = $1 AND w.merged_into = m.id ORDER BY w.created_at, w.id) AS also
FROM memories AS m
WHERE m.tenant_id = $1 AND m.namespace = $2 AND m.visibility = $3 AND m.user_id = $4 AND m.origin = 'extracted'
      AND m.deleted_at IS NULL AND m.merged_into IS NULL
      AND (EXISTS (SELECT FROM recall_terms AS t WHERE t.tenant_id = $1 AND t.item_id = m.id AND t.term = ANY ($5::text[]))
           OR EXISTS (SELECT FROM memories AS w JOIN recall_terms AS t ON t.tenant_id = $1 AND t.item_id = w.id
                      WHERE w.tenant_id = $1 AND w.merged_into = m.id AND t.term = ANY ($5::text[])))
ORDER BY m.created_at, m.id

-- name: memories_drawn
-- What for: which items are statements drawn from talk that stand for themselves, as they were said. $1 tenant, $2 ids.
SELECT id FROM memories
WHERE tenant_id = $1 AND id = ANY ($2::uuid[]) AND origin = 'extracted' AND deleted_at IS NULL AND merged_into IS NULL
ORDER BY created_at, id

-- name: memories_alike
-- What for: a statement, and those of its very scope and kind that are near to it by meaning, as they were said; exact,
-- so that no row of another scope moves what is found. $1 tenant, $2 id, $3 least cosine.
SELECT o.id, o.kind, o.text, o.created_at, o.valid_to, o.superseded_by,
       (SELECT count(*) FROM lineage AS l WHERE l.tenant_id = $1 AND l.item_id = o.id AND l.source_kind = 'message') AS stated,
       ARRAY[]::text[] AS also, 1 - (theirs.embedding <=> mine.embedding) AS cosine
FROM memories AS m
JOIN recall_index AS mine ON mine.tenant_id = $1 AND mine.id = m.id
JOIN memories AS o ON o.tenant_id = $1 AND o.namespace = m.namespace AND o.visibility = m.visibility AND o.user_id = m.user_id
                      AND o.kind = m.kind AND o.origin = 'extracted' AND o.deleted_at IS NULL
JOIN recall_index AS theirs ON theirs.tenant_id = $1 AND theirs.id = o.id
WHERE m.tenant_id = $1 AND m.id = $2 AND m.merged_into IS NULL AND o.merged_into IS NULL
      AND (o.id = m.id OR 1 - (theirs.embedding <=> mine.embedding) >= $3)
ORDER BY o.created_at, o.id

-- name: memories_merge
-- What for: a statement becomes one with another, which has all its messages from then on: what was one with it goes
-- along. It flowed from the other now, so that who forgets that forgets it too. A proposal to pin it is the other's.
-- $1 tenant, $2 the one that goes, $3 the one that stays, $4 the proposed landmark of the one that goes.
WITH gone AS (
    UPDATE memories SET merged_into = $3, superseded_by = NULL, valid_to = NULL
    WHERE tenant_id = $1 AND (id = $2 OR merged_into = $2) RETURNING id, created_at
), said AS (
    INSERT INTO lineage (tenant_id, item_kind, item_id, source_kind, source_id)
    SELECT DISTINCT $1, 'memory', $3::uuid, l.source_kind, l.source_id
    FROM lineage AS l WHERE l.tenant_id = $1 AND l.item_id = $2 AND l.source_id <> $3
    UNION ALL
    SELECT $1, 'memory', id, 'memory', $3::uuid FROM gone
    ON CONFLICT DO NOTHING
), proposed AS (
    DELETE FROM landmarks WHERE tenant_id = $1 AND id = $4 AND state = 'proposed'
), found AS (
    UPDATE recall_index AS r SET expires_at = gone.created_at FROM gone WHERE r.tenant_id = $1 AND r.id = gone.id
)
UPDATE recall_terms AS t SET expires_at = gone.created_at FROM gone WHERE t.tenant_id = $1 AND t.item_id = gone.id

-- name: memories_merged
-- What for: the other wordings of some statements. $1 tenant, $2 ids.
SELECT id FROM memories WHERE tenant_id = $1 AND merged_into = ANY ($2::uuid[])

-- name: memories_near
-- What for: what an extractor is shown, so that it does not say again what is known: memories of the very run, visibility
-- and, where it is private, owner of the talk. $1 tenant, $2 run, $3 visibility, $4 owner or NULL, $5 vector, $6 how many,
-- $7 the vector's embedder: nothing when the stored vectors are of another one by now.
SELECT m.id, m.text FROM recall_index AS r JOIN memories AS m ON m.tenant_id = $1 AND m.id = r.id
WHERE r.tenant_id = $1 AND r.namespace = $2 AND r.visibility = $3 AND r.kind = 'memory' AND m.namespace = $2 AND m.visibility = $3
      AND ($3 <> 'private' OR m.user_id = $4) AND r.embedding IS NOT NULL AND m.deleted_at IS NULL
      AND (SELECT value FROM deployment WHERE key = 'embedder') = $7::jsonb
      AND m.superseded_by IS NULL AND m.merged_into IS NULL AND m.origin = 'extracted'
ORDER BY r.embedding <=> $5::vector, m.id
LIMIT $6

-- name: memories_restated
-- What for: a memory was stated again: it is as old as its first statement, and ends when the later one would.
-- $1 tenant, $2 id, $3 said at, $4 ends at or NULL.
WITH changed AS (
    UPDATE memories SET created_at = least(created_at, $3), expires_at = greatest(expires_at, $4)
    WHERE tenant_id = $1 AND id = $2 RETURNING id, created_at, least(expires_at, valid_to) AS ends
), found AS (
    UPDATE recall_index AS r SET at = changed.created_at, expires_at = changed.ends
    FROM changed WHERE r.tenant_id = $1 AND r.id = changed.id
)
UPDATE recall_terms AS t SET at = changed.created_at, expires_at = changed.ends
FROM changed WHERE t.tenant_id = $1 AND t.item_id = changed.id

-- name: memories_outdate
-- What for: a newer statement takes the place of older ones, from the time it was said; they stay as history.
-- $1 tenant, $2 old ids, $3 the new one, $4 said at.
WITH changed AS (
    UPDATE memories SET superseded_by = $3, valid_to = $4
    WHERE tenant_id = $1 AND id = ANY ($2::uuid[]) AND id <> $3 RETURNING id, least(expires_at, valid_to) AS ends
), found AS (
    UPDATE recall_index AS r SET expires_at = changed.ends FROM changed WHERE r.tenant_id = $1 AND r.id = changed.id
)
UPDATE recall_terms AS t SET expires_at = changed.ends FROM changed WHERE t.tenant_id = $1 AND t.item_id = changed.id

-- name: memories_reinstate
-- What for: before memories are erased, what they had superseded holds again, or until what had superseded them in turn:
-- as if they had never been said. $1 tenant, $2 ids that go.
WITH RECURSIVE chain (id, next, ends) AS (
    SELECT id, superseded_by, valid_to FROM memories
    WHERE tenant_id = $1 AND superseded_by = ANY ($2::uuid[]) AND NOT id = ANY ($2::uuid[])
    UNION ALL
    SELECT c.id, m.superseded_by, m.valid_to
    FROM chain AS c JOIN memories AS m ON m.tenant_id = $1 AND m.id = c.next
    WHERE c.next = ANY ($2::uuid[])
), changed AS (
    UPDATE memories AS m SET superseded_by = c.next, valid_to = c.ends
    FROM chain AS c
    WHERE m.tenant_id = $1 AND m.id = c.id AND (c.next IS NULL OR NOT c.next = ANY ($2::uuid[]))
    RETURNING m.id, least(m.expires_at, m.valid_to) AS ends
), found AS (
    UPDATE recall_index AS r SET expires_at = changed.ends FROM changed WHERE r.tenant_id = $1 AND r.id = changed.id
)
UPDATE recall_terms AS t SET expires_at = changed.ends FROM changed WHERE t.tenant_id = $1 AND t.item_id = changed.id

-- name: memories_remake
-- What for: memories go because a part of what they were made from goes; they are made again from the rest, so those
-- messages are read anew. $1 tenant, $2 memories that go, $3 messages that go.
UPDATE messages SET indexed = false
WHERE tenant_id = $1 AND NOT ephemeral AND NOT id = ANY ($3::uuid[])
      AND id IN (SELECT source_id FROM lineage WHERE tenant_id = $1 AND item_id = ANY ($2::uuid[]) AND source_kind = 'message')

-- name: memories_outdated
-- What for: the history of what is remembered: what held once and no longer does, latest first, with what took its place
-- where that may be read too. $1 tenant, $2 runs, $3 pooled, $4 visibilities, $5 readers, $6 vendor, $7 at, $8 terms, $9 how many.
SELECT m.id, m.namespace, m.visibility, m.user_id, m.allowed_vendors, m.kind, m.text, m.author, m.created_at, m.valid_to,
       n.text AS newer, n.namespace AS newer_run_id, n.visibility AS newer_visibility, n.user_id AS newer_user_id,
       n.allowed_vendors AS newer_vendors
FROM memories AS m
LEFT JOIN memories AS n ON n.tenant_id = $1 AND n.id = m.superseded_by AND n.namespace = m.namespace
     AND n.visibility = m.visibility AND n.user_id = m.user_id AND n.deleted_at IS NULL
     AND may_read(n.namespace, n.visibility, n.user_id, n.allowed_vendors, $3::text[], $4::text[], $5::uuid[], $6)
WHERE m.tenant_id = $1 AND m.namespace = ANY ($2::text[])
      AND may_read(m.namespace, m.visibility, m.user_id, m.allowed_vendors, $3::text[], $4::text[], $5::uuid[], $6)
      AND m.superseded_by IS NOT NULL AND m.valid_to <= $7 AND m.deleted_at IS NULL
      AND EXISTS (SELECT FROM recall_terms AS t WHERE t.tenant_id = $1 AND t.item_id = m.id AND t.term = ANY ($8::text[]))
ORDER BY m.valid_to DESC, m.id
LIMIT $9
