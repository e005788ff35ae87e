-- name: landmarks_readable
-- Get the readable landmarks decided by a time, oldest first, with the messages they were found in; `retired` includes
-- retired ones.
SELECT id, namespace, visibility, user_id, text, author, decided_at, state, settled_by, replaces,
       ARRAY(SELECT source.external_id FROM lineage AS l
             JOIN messages AS source ON source.tenant_id = :tenant_id AND source.id = l.source_id
             WHERE l.tenant_id = :tenant_id AND l.item_id = landmarks.id ORDER BY source.at, source.seq) AS messages
FROM landmarks
WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[]) AND (state <> 'retired' OR :retired)
      AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[],
          :vendor)
      AND decided_at <= :at
ORDER BY decided_at, id

-- name: landmarks_insert
-- Add landmarks; existing ones stay unchanged.
INSERT INTO landmarks (tenant_id, id, namespace, user_id, agent_id, visibility, text, author, decided_at, state,
    replaces)
SELECT :tenant_id, * FROM unnest(:ids::uuid[], :namespaces::text[], :user_ids::uuid[], :agent_ids::uuid[],
                         :visibilities::text[], :texts::text[], :authors::text[], :decided_at::timestamptz[],
                         :states::text[], :replaces::uuid[])
ON CONFLICT DO NOTHING RETURNING id

-- name: landmark_set_state
-- Pin or retire a landmark; no row when it has that state already or is retired.
UPDATE landmarks SET state = :state, settled_by = :user_name, retired_at = CASE WHEN :state = 'retired'
    THEN :now::timestamptz END
WHERE tenant_id = :tenant_id AND id = :id AND state <> 'retired' AND state <> :state
RETURNING id
