-- name: landmarks_readable
-- Get the readable landmarks decided by a time, oldest first, with the messages they were found in. Of the proposed ones
-- only `max_proposed` of each namespace (and owner, where they are private) that are younger than `lifetime`: the latest of
-- each author, the reader's own first, then the next of each; the others have lapsed. One that was retired after the time
-- counts as pinned. `retired` includes those that are retired or lapsed.
WITH readable AS (
    SELECT *, state = 'proposed' AND decided_at > :at::timestamptz - :lifetime::interval AS open FROM landmarks
    WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[])
          AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[],
              :vendor)
          AND decided_at <= :at
), in_turns AS (
    SELECT *, row_number() OVER (PARTITION BY namespace, visibility, open, user_id
                                 ORDER BY decided_at DESC, id) AS turn
    FROM readable
), with_lapsed AS (
    SELECT *, state = 'proposed'
              AND NOT (open AND row_number() OVER (
                  PARTITION BY namespace, visibility, open, CASE WHEN visibility = 'private' THEN user_id END
                  ORDER BY turn, coalesce(user_id = ANY (:readers::uuid[]), false) DESC, decided_at DESC, id
              ) <= :max_proposed) AS lapsed
    FROM in_turns
)
SELECT l.id, l.namespace, l.visibility, l.user_id, l.text, l.author, l.decided_at, l.state, l.settled_by, l.replaces,
       l.lapsed,
       ARRAY(SELECT source.external_id FROM lineage
             JOIN messages AS source ON source.tenant_id = :tenant_id AND source.id = lineage.source_id
             WHERE lineage.tenant_id = :tenant_id AND lineage.item_id = l.id
                   AND lineage.source_kind = 'message'
             ORDER BY source.at, source.seq) AS messages
FROM with_lapsed AS l
WHERE :retired OR (l.state <> 'retired' AND NOT l.lapsed) OR (l.state = 'retired' AND l.retired_at > :at)
ORDER BY l.decided_at, l.id

-- name: landmarks_found
-- List the latest readable landmarks that hold, or are proposed and younger than `lifetime`, that have all of these patterns (of
-- LIKE) in their words and are of nobody of `without`.
SELECT l.id, l.namespace, l.visibility, l.user_id, l.text, l.author, l.decided_at, l.state, l.settled_by, l.replaces,
       false AS lapsed, ARRAY[]::text[] AS messages
FROM landmarks AS l
WHERE l.tenant_id = :tenant_id AND l.namespace = ANY (:namespaces::text[])
      AND may_read(l.namespace, l.visibility, l.user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[], :vendor)
      AND l.decided_at <= :at
      AND (l.state = 'pinned' OR l.state = 'proposed' AND l.decided_at > :at::timestamptz - :lifetime::interval)
      AND l.text ILIKE ALL (:patterns::text[]) AND coalesce(l.user_id <> ALL (:without::uuid[]), true)
ORDER BY l.decided_at DESC, l.id
LIMIT :limit

-- name: landmark_messages
-- List the messages that landmarks were found in, as far as one viewer may read them, with their place on the platform, oldest
-- first; without those of people who opted out. From whose file each came, `sources_uploaded` says.
SELECT l.item_id AS landmark_id, m.id, m.external_id, m.namespace, m.visibility, m.user_id, m.author, m.text, m.at, c.kind,
       c.platform, c.workspace, coalesce(r.name, c.name) AS name, c.thread, coalesce(r.id, c.id) AS room_id,
       coalesce(r.private, c.private) AS private
FROM lineage AS l
JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = l.source_id
JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = m.conversation_id
LEFT JOIN conversations AS r ON r.tenant_id = :tenant_id AND r.id = c.room_id
JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = m.user_id AND NOT u.opted_out
WHERE l.tenant_id = :tenant_id AND l.item_id = ANY (:landmark_ids::uuid[]) AND l.item_kind = 'landmark'
      AND l.source_kind = 'message' AND NOT m.ephemeral AND m.namespace = ANY (:namespaces::text[])
      AND may_read(m.namespace, m.visibility, m.user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[], :vendor)
ORDER BY m.at, m.seq

-- name: landmarks_insert
-- Add landmarks; existing ones stay unchanged.
INSERT INTO landmarks (tenant_id, id, namespace, user_id, agent_id, visibility, text, author, decided_at, state,
    replaces, trust)
SELECT :tenant_id, * FROM unnest(:ids::uuid[], :namespaces::text[], :user_ids::uuid[], :agent_ids::uuid[],
                         :visibilities::text[], :texts::text[], :authors::text[], :decided_at::timestamptz[],
                         :states::text[], :replaces::uuid[], :trusts::text[])
ON CONFLICT DO NOTHING RETURNING id

-- name: landmark_set_state
-- Pin or retire a landmark; no row when it has that state already or is retired.
UPDATE landmarks SET state = :state, settled_by = :user_name, retired_at = CASE WHEN :state = 'retired'
    THEN :now::timestamptz END
WHERE tenant_id = :tenant_id AND id = :id AND state <> 'retired' AND state <> :state
RETURNING id

-- name: landmarks_settled
-- Get the landmarks found in these messages about which a person has decided, by message.
SELECT l.source_id, landmark.id, landmark.text FROM lineage AS l
JOIN landmarks AS landmark ON landmark.tenant_id = :tenant_id AND landmark.id = l.item_id
WHERE l.tenant_id = :tenant_id AND l.source_id = ANY (:message_ids::uuid[]) AND l.item_kind = 'landmark'
      AND (landmark.settled_by IS NOT NULL OR landmark.state <> 'proposed')

-- name: landmark_add_sources
-- Record further messages in which a landmark was found; nothing when there is no such landmark.
INSERT INTO lineage (tenant_id, item_kind, item_id, source_kind, source_id)
SELECT :tenant_id, 'landmark', landmark.id, s.kind, s.id
FROM unnest(:source_kinds::text[], :source_ids::uuid[]) AS s (kind, id)
JOIN landmarks AS landmark ON landmark.tenant_id = :tenant_id AND landmark.id = :id
ON CONFLICT DO NOTHING

-- name: landmark_correct
-- Correct the text of a landmark.
UPDATE landmarks SET text = :text WHERE tenant_id = :tenant_id AND id = :id

-- name: landmarks_confirmed
-- List the landmarks that a person pinned, accepted, amended or retired.
SELECT id FROM landmarks WHERE tenant_id = :tenant_id AND (settled_by IS NOT NULL OR replaces IS NOT NULL
    OR state <> 'proposed')
