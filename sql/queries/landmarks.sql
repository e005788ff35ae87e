-- name: landmarks_readable
-- Get the readable landmarks decided by a time, oldest first, with the messages they were found in. Of the proposed ones
-- only the latest `max_proposed` of each namespace (and owner, where they are private) that are younger than `lifetime`;
-- the others have lapsed. One that was retired after the time counts as pinned. `retired` includes those that are
-- retired or lapsed.
WITH open AS MATERIALIZED (
    SELECT id, row_number() OVER (PARTITION BY namespace, visibility, CASE WHEN visibility = 'private' THEN user_id END
                                  ORDER BY decided_at DESC, id) AS nth
    FROM landmarks
    WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[]) AND state = 'proposed'
          AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[],
              :vendor)
          AND decided_at <= :at AND decided_at > :at - :lifetime::interval
)
SELECT l.id, l.namespace, l.visibility, l.user_id, l.text, l.author, l.decided_at, l.state, l.settled_by, l.replaces,
       l.state = 'proposed' AND coalesce(open.nth, :max_proposed + 1) > :max_proposed AS lapsed,
       ARRAY(SELECT source.external_id FROM lineage
             JOIN messages AS source ON source.tenant_id = :tenant_id AND source.id = lineage.source_id
             WHERE lineage.tenant_id = :tenant_id AND lineage.item_id = l.id
                   AND lineage.source_kind = 'message'
             ORDER BY source.at, source.seq) AS messages
FROM landmarks AS l LEFT JOIN open USING (id)
WHERE l.tenant_id = :tenant_id AND l.namespace = ANY (:namespaces::text[])
      AND may_read(l.namespace, l.visibility, l.user_id, NULL, :pooled::text[], :visibilities::text[],
          :readers::uuid[], :vendor)
      AND l.decided_at <= :at
      AND (:retired OR l.state = 'pinned' OR (l.state = 'proposed' AND open.nth <= :max_proposed)
           OR (l.state = 'retired' AND l.retired_at > :at))
ORDER BY l.decided_at, l.id

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

-- name: landmarks_confirmed
-- List the landmarks that a person pinned, accepted, amended or retired.
SELECT id FROM landmarks WHERE tenant_id = :tenant_id AND (settled_by IS NOT NULL OR replaces IS NOT NULL
    OR state <> 'proposed')
