-- name: facts_readable
-- What for: the facts that hold at a time, in a viewer's scope. $1 tenant, $2 runs, $3 pooled, $4 visibilities, $5 readers,
-- $6 vendor, $7 key or NULL, $8 at.
SELECT id, namespace, visibility, user_id, key, value, author, valid_from, valid_to,
       CASE WHEN starts_with(namespace, 'profile:')
            THEN (SELECT u.name FROM users AS u WHERE u.tenant_id = $1 AND u.id = substr(namespace, 9)::uuid) END AS subject
FROM facts
WHERE tenant_id = $1 AND namespace = ANY ($2::text[])
      AND may_read(namespace, visibility, user_id, NULL, $3::text[], $4::text[], $5::uuid[], $6)
      AND valid_from <= $8 AND (valid_to IS NULL OR valid_to > $8)
      AND ($7::text IS NULL OR key = $7)
ORDER BY key, namespace, id

-- name: facts_history
-- What for: every value that a key has had, oldest first. Parameters as facts_readable, without the time.
SELECT id, namespace, visibility, user_id, key, value, author, valid_from, valid_to,
       CASE WHEN starts_with(namespace, 'profile:')
            THEN (SELECT u.name FROM users AS u WHERE u.tenant_id = $1 AND u.id = substr(namespace, 9)::uuid) END AS subject
FROM facts
WHERE tenant_id = $1 AND namespace = ANY ($2::text[])
      AND may_read(namespace, visibility, user_id, NULL, $3::text[], $4::text[], $5::uuid[], $6)
      AND key = $7
ORDER BY valid_from, id

-- name: fact_close
-- What for: a newer value takes over, if it is not known already. $1 tenant, $2 run, $3 visibility, $4 key, $5 now,
-- $6 the newer one's id.
UPDATE facts SET valid_to = greatest($5, valid_from + interval '1 microsecond')
WHERE tenant_id = $1 AND namespace = $2 AND visibility = $3 AND key = $4 AND valid_to IS NULL
      AND NOT EXISTS (SELECT FROM facts AS known WHERE known.tenant_id = $1 AND known.id = $6)
RETURNING id, value, valid_to

-- name: fact_insert
-- What for: a value from now on. $1 tenant, $2 id, $3 run, $4 user, $5 agent, $6 visibility, $7 key, $8 value, $9 author,
-- $10 origin, $11 from.
INSERT INTO facts (tenant_id, id, namespace, user_id, agent_id, visibility, key, value, author, origin, valid_from)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT DO NOTHING RETURNING id

-- name: landmarks_readable
-- What for: the decisions that had been made by a time, oldest first, with the messages that they were found in. $1 tenant,
-- $2 runs, $3 pooled, $4 visibilities, $5 readers, $6 vendor, $7 at, $8 whether also those that are retired.
SELECT id, namespace, visibility, user_id, text, author, decided_at, state, settled_by, replaces,
       ARRAY(SELECT source.external_id FROM lineage AS l
             JOIN messages AS source ON source.tenant_id = $1 AND source.id = l.source_id
             WHERE l.tenant_id = $1 AND l.item_id = landmarks.id ORDER BY source.at, source.seq) AS messages
FROM landmarks
WHERE tenant_id = $1 AND namespace = ANY ($2::text[]) AND (state <> 'retired' OR $8)
      AND may_read(namespace, visibility, user_id, NULL, $3::text[], $4::text[], $5::uuid[], $6)
      AND decided_at <= $7
ORDER BY decided_at, id

-- name: landmarks_insert
-- What for: pin or propose decisions; one that is known stays as it is. $1 tenant, $2 ids, $3 runs, $4 users, $5 agents,
-- $6 visibilities, $7 texts, $8 authors, $9 times, $10 states, $11 the versions that they replace.
INSERT INTO landmarks (tenant_id, id, namespace, user_id, agent_id, visibility, text, author, decided_at, state, replaces)
SELECT $1, * FROM unnest($2::uuid[], $3::text[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::timestamptz[],
                         $10::text[], $11::uuid[])
ON CONFLICT DO NOTHING RETURNING id

-- name: landmark_settle
-- What for: a person accepts or retires a decision. $1 tenant, $2 id, $3 the new state, $4 by whom, $5 when.
UPDATE landmarks SET state = $3, settled_by = $4, retired_at = CASE WHEN $3 = 'retired' THEN $5::timestamptz END
WHERE tenant_id = $1 AND id = $2 AND state <> 'retired' AND state <> $3
RETURNING id

-- name: lineage_insert
-- What for: note from what an item was made. $1 tenant, $2 item kinds, $3 items, $4 source kinds, $5 sources.
INSERT INTO lineage (tenant_id, item_kind, item_id, source_kind, source_id)
SELECT $1, * FROM unnest($2::text[], $3::uuid[], $4::text[], $5::uuid[])
ON CONFLICT DO NOTHING
