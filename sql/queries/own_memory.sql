-- name: own_memory
-- List a person's current memories, facts and landmarks, and those that wait for approval, latest first: those whose id begins
-- with `beginning` (hexadecimal digits), on these shelves (NULL: all), that were written by these (NULL: all), with all of
-- these patterns (of LIKE) in their words, before an item of this time and id (NULL: from the latest). `trashed`: those in the
-- trash, in place of the others.
SELECT kind, id, user_id, namespace, visibility, shelf, label, text, key, at, author, origin, vendors, tags, pending, trashed_at
FROM (
    SELECT 'memory' AS kind, id, user_id, namespace, visibility,
           CASE WHEN kind IN ('preference', 'habit') THEN 'preferences' WHEN kind IN ('fact', 'factual') THEN 'facts'
                WHEN kind = 'decision' THEN 'decisions' ELSE 'notes' END AS shelf, kind AS label,
           text, key, created_at AS at, author, origin, allowed_vendors AS vendors, tags, false AS pending, trashed_at
    FROM memories
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND superseded_by IS NULL AND merged_into IS NULL
          AND (trashed_at IS NOT NULL) = :trashed AND (expires_at IS NULL OR expires_at > :now)
    UNION ALL
    SELECT 'fact', id, user_id, namespace, visibility, 'facts', 'fact', key || ' = ' || value::text, key, valid_from,
           author, origin, '{*}', '{}', false, NULL
    FROM facts
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND valid_to IS NULL AND NOT :trashed
    UNION ALL
    SELECT 'landmark', id, user_id, namespace, visibility, 'decisions',
           CASE state WHEN 'proposed' THEN 'proposed' ELSE 'pinned' END, text, NULL, decided_at, author, '', '{*}', '{}', false,
           NULL
    FROM landmarks
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND state <> 'retired' AND NOT :trashed
    UNION ALL
    SELECT kind, id, user_id, namespace, visibility, 'waiting', kind,
           CASE kind WHEN 'fact' THEN detail || ' = ' || text ELSE text END, NULL, at, author, origin, '{*}', '{}', true, NULL
    FROM quarantine
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND state = 'pending' AND NOT :trashed
) AS items
WHERE starts_with(replace(id::text, '-', ''), :beginning)
      AND (:shelf::text IS NULL OR shelf = :shelf)
      AND (:origins::text[] IS NULL OR origin = ANY (:origins))
      AND text ILIKE ALL (:patterns::text[])
      AND (:before_at::timestamptz IS NULL OR (at, id) < (:before_at, :before_id::uuid))
ORDER BY at DESC, id DESC
LIMIT :limit

-- name: own_memory_counts
-- Count a person's current items by shelf and by who wrote them (`origin`), and those in the trash.
SELECT shelf, origin, count(*) AS count FROM (
    SELECT CASE WHEN trashed_at IS NOT NULL THEN 'trash' WHEN kind IN ('preference', 'habit') THEN 'preferences'
                WHEN kind IN ('fact', 'factual') THEN 'facts' WHEN kind = 'decision' THEN 'decisions' ELSE 'notes' END AS shelf,
           origin
    FROM memories
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND superseded_by IS NULL AND merged_into IS NULL
          AND (expires_at IS NULL OR expires_at > :now)
    UNION ALL
    SELECT 'facts', origin FROM facts
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND valid_to IS NULL
    UNION ALL
    SELECT 'decisions', '' FROM landmarks
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND state <> 'retired'
    UNION ALL
    SELECT 'waiting', origin FROM quarantine
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND state = 'pending'
) AS items
GROUP BY shelf, origin

-- name: own_memory_traces
-- What an item of a person was made from, of the person's own messages, and the answers that it led to: those to the person's
-- own questions, and those in rooms that the person may read now (`joined_ids`: those that they are in).
WITH sources AS (
    SELECT m.id, m.at, m.text, m.conversation_id FROM lineage AS l
    JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = l.source_id AND m.user_id = ANY (:user_ids::uuid[])
    WHERE l.tenant_id = :tenant_id AND l.item_id = :id AND l.source_kind = 'message'
), answers AS (
    SELECT q.id, t.answered_at AS at, q.text, q.conversation_id, q.user_id FROM lineage AS l
    JOIN turns AS t ON t.tenant_id = :tenant_id AND t.id = l.item_id
    JOIN messages AS q ON q.tenant_id = :tenant_id AND q.id = t.message_id AND NOT q.ephemeral
    JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = t.conversation_id
    JOIN conversations AS room ON room.tenant_id = :tenant_id AND room.id = coalesce(c.room_id, c.id)
    WHERE l.tenant_id = :tenant_id AND l.source_id = :id AND l.item_kind = 'turn' AND t.answered_at IS NOT NULL
          AND (q.user_id = ANY (:user_ids::uuid[])
               OR room.kind = 'room' AND q.namespace = room.namespace AND (NOT room.private OR room.id = ANY (:joined_ids::uuid[])))
)
SELECT 'source' AS part, s.id, s.at, s.text, c.kind AS place_kind, coalesce(c.title, c.name) AS place, true AS own, '' AS asker
FROM sources AS s JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = s.conversation_id
UNION ALL
SELECT 'answer', a.id, a.at, a.text, c.kind, coalesce(c.title, c.name), a.user_id = ANY (:user_ids::uuid[]), u.name
FROM answers AS a JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = a.conversation_id
JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = a.user_id
ORDER BY 3 DESC
LIMIT :limit
