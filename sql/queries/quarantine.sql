-- name: quarantine_insert
-- Add rows to the quarantine; existing ones, pending or decided, stay unchanged.
INSERT INTO quarantine (tenant_id, id, kind, item_id, namespace, user_id, visibility, trust, detail, text, author, origin,
                        at, state, entry)
SELECT :tenant_id, * FROM unnest(:ids::uuid[], :kinds::text[], :item_ids::uuid[], :namespaces::text[],
                         :user_ids::uuid[], :visibilities::text[], :trusts::text[], :details::text[], :texts::text[],
                         :authors::text[], :origins::text[], :at::timestamptz[], :states::text[],
                         :entries::json[])
ON CONFLICT DO NOTHING RETURNING id

-- name: quarantine_drop
-- Delete the rows of an entry, before another version of it takes their place.
DELETE FROM quarantine WHERE tenant_id = :tenant_id AND user_id = :user_id AND item_id = :item_id AND entry IS NOT NULL

-- name: quarantine_entry_waits
-- Find the entry of a person that waits for approval: the one of an id, or the one that one tool wrote with a key in a place.
SELECT item_id FROM quarantine
WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND state = 'pending' AND entry IS NOT NULL
      AND (item_id = :item_id::uuid OR namespace = :namespace AND origin = :origin AND entry ->> 'key' = :key)
ORDER BY at DESC, id LIMIT 1

-- name: quarantine_states
-- Get the states of rows.
SELECT id, state FROM quarantine WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])

-- name: quarantine_pending
-- Get the pending rows of the places that a viewer may review, oldest first, with the messages they were found in: memories of
-- `namespaces`, facts and landmarks of `others`; of members (they wait for being their own) those of `authors` in `own`.
SELECT id, kind, item_id, namespace, user_id, visibility, trust, detail, text, author, origin, at, entry,
       ARRAY(SELECT l.source_id FROM lineage AS l WHERE l.tenant_id = :tenant_id AND l.item_id = quarantine.id
             AND l.source_kind = 'message' ORDER BY l.source_id) AS sources,
       ARRAY(SELECT l.source_id FROM lineage AS l WHERE l.tenant_id = :tenant_id AND l.item_id = quarantine.id
             AND l.source_kind = 'shown' ORDER BY l.source_id) AS shown
FROM quarantine
WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[] || :others::text[] || :own::text[]) AND state = 'pending'
      AND CASE trust WHEN 'member' THEN namespace = ANY (:own) AND user_id = ANY (:authors::uuid[])
          ELSE namespace = ANY (CASE kind WHEN 'memory' THEN :namespaces::text[] ELSE :others::text[] END)
               AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[],
                   :vendor) END
      AND (:author::uuid IS NULL OR user_id = :author) AND at >= :since
ORDER BY at, id

-- name: waiting_count
-- Count what waits for somebody: the rows that `quarantine_pending` lists (`reviewed_…`), the proposed landmarks that
-- `landmarks_readable` lists, and the open invitations of any of their users.
SELECT (SELECT count(*) FROM quarantine
        WHERE tenant_id = :tenant_id AND state = 'pending'
              AND namespace = ANY (:reviewed_namespaces::text[] || :reviewed_others::text[] || :reviewed_own::text[])
              AND CASE trust WHEN 'member' THEN namespace = ANY (:reviewed_own) AND user_id = ANY (:reviewed_authors::uuid[])
                  ELSE namespace = ANY (CASE kind WHEN 'memory' THEN :reviewed_namespaces::text[] ELSE :reviewed_others::text[] END)
                       AND may_read(namespace, visibility, user_id, NULL, :reviewed_pooled::text[], :reviewed_visibilities::text[],
                           :reviewed_readers::uuid[], :reviewed_vendor) END)
       + (SELECT coalesce(sum(least(n, :max_proposed)), 0)::bigint
          FROM (SELECT count(*) AS n FROM landmarks
                WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[]) AND state = 'proposed'
                      AND decided_at > :at::timestamptz - :lifetime::interval AND decided_at <= :at
                      AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[],
                          :readers::uuid[], :vendor)
                GROUP BY namespace, visibility) AS of_places)
       + (SELECT count(*) FROM invites
          WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND expires_at > :at)

-- name: quarantine_decide
-- Approve or reject rows: those that are pending, or all of them, whatever was decided before. Their texts go.
UPDATE quarantine SET state = :state, detail = '', text = '', entry = NULL
WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) AND (:decided::boolean OR state = 'pending') RETURNING id

-- name: contributions_find
-- Get the memories, facts and landmarks of one author since a time, in the places that a viewer may review, oldest
-- first: current and replaced ones.
SELECT kind, id, namespace, visibility, user_id, detail, text, author, trust, at, NULL AS entry,
       ARRAY(SELECT l.source_id FROM lineage AS l WHERE l.tenant_id = :tenant_id AND l.item_id = found.id
             AND l.source_kind = 'message' ORDER BY l.source_id) AS sources,
       ARRAY[]::uuid[] AS shown
FROM (
    SELECT 'memory' AS kind, id, namespace, visibility, user_id, allowed_vendors AS vendors, kind AS detail, text,
           author, trust, coalesce(said_at, created_at) AS at
    FROM memories WHERE tenant_id = :tenant_id AND user_id = :author AND namespace = ANY (:namespaces::text[])
                        AND trashed_at IS NULL
    UNION ALL
    SELECT 'fact', id, namespace, visibility, user_id, NULL, key, value::text, author, trust,
           coalesce(set_at, valid_from)
    FROM facts WHERE tenant_id = :tenant_id AND user_id = :author AND namespace = ANY (:namespaces::text[])
    UNION ALL
    SELECT 'landmark', id, namespace, visibility, user_id, NULL, state, text, author, trust, decided_at
    FROM landmarks WHERE tenant_id = :tenant_id AND user_id = :author AND namespace = ANY (:namespaces::text[])
) AS found
WHERE may_read(namespace, visibility, user_id, vendors, :pooled::text[], :visibilities::text[], :readers::uuid[],
          :vendor)
      AND at >= :since
ORDER BY at, kind, id

-- name: landmarks_amending
-- Find the versions that have replaced landmarks since, directly or over others. `ids` themselves are left out.
WITH RECURSIVE later (id) AS (
    SELECT l.id FROM landmarks AS l WHERE l.tenant_id = :tenant_id AND l.replaces = ANY (:ids::uuid[])
    UNION
    SELECT l.id FROM later JOIN landmarks AS l ON l.tenant_id = :tenant_id AND l.replaces = later.id
)
SELECT id FROM later WHERE NOT id = ANY (:ids::uuid[])
