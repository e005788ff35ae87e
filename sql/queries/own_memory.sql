-- part: own_memory_shelf
-- The shelf of a memory.
CASE WHEN kind IN ('preference', 'habit') THEN 'preferences' WHEN kind IN ('fact', 'factual') THEN 'facts'
     WHEN kind = 'decision' THEN 'decisions' ELSE 'notes' END

-- part: own_memory_memory
-- A memory of a person as an item. A decision that was found in a message is a memory and a landmark of the same words: it is
-- listed once, as the memory, labelled by what became of the landmark (proposed: for `lifetime`, then lapsed).
'memory' AS kind, id, user_id, namespace, visibility,
{{own_memory_shelf}} AS shelf,
CASE WHEN kind <> 'decision' THEN kind
     WHEN (namespace, text) IN (SELECT l.namespace, l.text FROM landmarks AS l WHERE l.tenant_id = :tenant_id
                                AND l.user_id = ANY (:user_ids::uuid[]) AND l.state = 'pinned') THEN 'pinned'
     WHEN (namespace, text) IN (SELECT l.namespace, l.text FROM landmarks AS l WHERE l.tenant_id = :tenant_id
                                AND l.user_id = ANY (:user_ids::uuid[]) AND l.state = 'proposed'
                                AND l.decided_at > :now::timestamptz - :lifetime::interval) THEN 'proposed'
     WHEN (namespace, text) IN (SELECT l.namespace, l.text FROM landmarks AS l WHERE l.tenant_id = :tenant_id
                                AND l.user_id = ANY (:user_ids::uuid[]) AND l.state = 'proposed') THEN 'lapsed'
     WHEN (namespace, text) IN (SELECT l.namespace, l.text FROM landmarks AS l WHERE l.tenant_id = :tenant_id
                                AND l.user_id = ANY (:user_ids::uuid[]) AND l.state = 'retired') THEN 'retired'
     ELSE kind END AS label,
text, key, created_at AS at, coalesce(updated_at, created_at) AS updated_at, author, origin, allowed_vendors AS vendors,
tags, false AS pending, trashed_at

-- part: own_memory_others
-- The current facts and landmarks of an account (`owner`) of a person as items, and what of theirs waits for approval; a value
-- that is a text has no quotes. `twins`:
-- also landmarks that are listed as the memory of the same words.
SELECT 'fact' AS kind, id, user_id, namespace, visibility, 'facts' AS shelf, 'fact' AS label, key || ' = ' || coalesce(value #>> '{}', 'null') AS text,
       key, valid_from AS at, valid_from AS updated_at, author, origin, ARRAY['*'] AS vendors, ARRAY[]::text[] AS tags,
       false AS pending, NULL::timestamptz AS trashed_at, valid_from AS sorted_at
FROM facts
WHERE tenant_id = :tenant_id AND user_id = owner.id AND valid_to IS NULL
UNION ALL
SELECT 'landmark', id, user_id, namespace, visibility, 'decisions',
       CASE WHEN state <> 'proposed' THEN 'pinned' WHEN decided_at > :now::timestamptz - :lifetime::interval THEN 'proposed'
            ELSE 'lapsed' END, text, NULL::text, decided_at, decided_at, author, ''::text,
       ARRAY['*'], ARRAY[]::text[], false, NULL::timestamptz, decided_at
FROM landmarks
WHERE tenant_id = :tenant_id AND user_id = owner.id AND state <> 'retired'
      AND (:twins::boolean OR NOT EXISTS (
          SELECT FROM memories AS m WHERE m.tenant_id = :tenant_id AND m.namespace = landmarks.namespace
          AND m.text = landmarks.text AND m.user_id = ANY (:user_ids::uuid[])
          AND m.kind = 'decision' AND m.superseded_by IS NULL AND m.merged_into IS NULL AND m.trashed_at IS NULL
          AND (m.expires_at IS NULL OR m.expires_at > :now::timestamptz)))
UNION ALL
SELECT kind, id, user_id, namespace, visibility, 'waiting', kind,
       CASE kind WHEN 'fact' THEN detail || ' = ' || coalesce(text::json #>> '{}', 'null') ELSE text END, NULL::text, at, at, author, origin, ARRAY['*'],
       ARRAY[]::text[], true, NULL::timestamptz, at
FROM quarantine
WHERE tenant_id = :tenant_id AND user_id = owner.id AND state = 'pending'

-- part: own_memory_reach
-- The memories of an account (`owner`) of a person that were written after a time, or then and of a greater id, and before
-- another one, or then and of a lesser id, if any are wanted (`memories`).
SELECT id, user_id, namespace, visibility, kind, text, key, created_at, updated_at, author, origin, allowed_vendors, tags,
       trashed_at, expires_at, superseded_by, merged_into
FROM memories
WHERE :memories::boolean AND tenant_id = :tenant_id AND user_id = owner.id
      AND (created_at, id) > (:since::timestamptz, :since_id::uuid)
      AND (created_at, id) < (:until::timestamptz, :until_id::uuid)

-- part: own_memory_rows
-- The items of an account (`owner`) of a person, also those in the trash, the latest first, `by` when they were created or
-- (updated) last changed: of the memories of `own_memory_reach` the first `most` (NULL: all), where they are in the order of
-- changes after one of a time and id (`after_at`).
-- Memories are read in their order, by its index, whatever else is asked of them (LIMIT, also without a number): the
-- plan that is kept for all filters would read all of somebody's, in the order of their ids, to list the latest.
(SELECT {{own_memory_memory}}, sorted_at
FROM (
    (SELECT *, created_at AS sorted_at FROM ({{own_memory_reach}}) AS reach WHERE :by::text <> 'updated'
     ORDER BY created_at DESC, id DESC LIMIT :most::bigint)
    UNION ALL
    (SELECT *, coalesce(updated_at, created_at) FROM ({{own_memory_reach}}) AS reach
     WHERE :by = 'updated' AND (coalesce(updated_at, created_at), id) < (:after_at::timestamptz, :after_id::uuid)
     ORDER BY coalesce(updated_at, created_at) DESC, id DESC LIMIT :most)
) AS memories
WHERE superseded_by IS NULL AND merged_into IS NULL AND (expires_at IS NULL OR expires_at > :now)
ORDER BY sorted_at DESC, id DESC)
UNION ALL
{{own_memory_others}}

-- part: own_memory_rows_up
-- The same, the earliest first.
(SELECT {{own_memory_memory}}, sorted_at
FROM (
    (SELECT *, created_at AS sorted_at FROM ({{own_memory_reach}}) AS reach WHERE :by::text <> 'updated'
     ORDER BY created_at, id LIMIT :most::bigint)
    UNION ALL
    (SELECT *, coalesce(updated_at, created_at) FROM ({{own_memory_reach}}) AS reach
     WHERE :by = 'updated' AND (coalesce(updated_at, created_at), id) > (:after_at::timestamptz, :after_id::uuid)
     ORDER BY coalesce(updated_at, created_at), id LIMIT :most)
) AS memories
WHERE superseded_by IS NULL AND merged_into IS NULL AND (expires_at IS NULL OR expires_at > :now)
ORDER BY sorted_at, id)
UNION ALL
{{own_memory_others}}

-- part: own_memory_last
-- The last of the memories that `own_memory_rows`, or where `direction` is -1 `own_memory_rows_up`, reads of an account, where
-- there are `most`.
(SELECT created_at AS at, id FROM ({{own_memory_reach}}) AS reach WHERE :by <> 'updated' AND :direction::int = 1
 ORDER BY created_at DESC, id DESC OFFSET :most::bigint - 1 LIMIT 1)
UNION ALL
(SELECT created_at, id FROM ({{own_memory_reach}}) AS reach WHERE :by <> 'updated' AND :direction = -1
 ORDER BY created_at, id OFFSET :most - 1 LIMIT 1)
UNION ALL
(SELECT coalesce(updated_at, created_at), id FROM ({{own_memory_reach}}) AS reach
 WHERE :by = 'updated' AND :direction = 1 AND (coalesce(updated_at, created_at), id) < (:after_at::timestamptz, :after_id::uuid)
 ORDER BY coalesce(updated_at, created_at) DESC, id DESC OFFSET :most - 1 LIMIT 1)
UNION ALL
(SELECT coalesce(updated_at, created_at), id FROM ({{own_memory_reach}}) AS reach
 WHERE :by = 'updated' AND :direction = -1 AND (coalesce(updated_at, created_at), id) > (:after_at, :after_id)
 ORDER BY coalesce(updated_at, created_at), id OFFSET :most - 1 LIMIT 1)

-- part: own_memory_fits
-- Whether an item fits some filters, of which each that is NULL fits all: it is on a shelf, was written by one of these tools
-- or people, is filed in one of these namespaces, and has all of these tags and all of these patterns (of LIKE) in its words.
-- `trashed`: it is in the trash, in place of not.
(trashed_at IS NOT NULL) = :trashed
AND (:shelf::text IS NULL OR shelf = :shelf)
AND (:origins::text[] IS NULL OR origin = ANY (:origins))
AND (:authors::text[] IS NULL OR author = ANY (:authors))
AND (:namespaces::text[] IS NULL OR namespace = ANY (:namespaces))
AND (:tags::text[] IS NULL OR tags @> :tags)
AND (cardinality(:patterns::text[]) = 0 OR text ILIKE ALL (:patterns))

-- part: own_memory_fitting
-- Those of `own_memory_rows` that fit, and were written between two times, as in `own_memory_reach`.
SELECT * FROM ({{own_memory_rows}}) AS items
WHERE {{own_memory_fits}} AND (at, id) > (:since, :since_id) AND (at, id) < (:until, :until_id)

-- part: own_memory_fitting_up
-- Those of `own_memory_rows_up`.
SELECT * FROM ({{own_memory_rows_up}}) AS items
WHERE {{own_memory_fits}} AND (at, id) > (:since, :since_id) AND (at, id) < (:until, :until_id)

-- name: own_memory_latest
-- List what fits, the latest first, after an item of a time and id.
SELECT page.*, NULL::timestamptz AS used_at
FROM unnest(:user_ids::uuid[]) AS owner (id) CROSS JOIN LATERAL (
    SELECT * FROM ({{own_memory_fitting}}) AS fitting
    WHERE (sorted_at, id) < (:after_at, :after_id)
    ORDER BY sorted_at DESC, id DESC
    LIMIT :limit
) AS page
ORDER BY sorted_at DESC, page.id DESC
LIMIT :limit

-- name: own_memory_earliest
-- The same, the earliest first.
SELECT page.*, NULL::timestamptz AS used_at
FROM unnest(:user_ids::uuid[]) AS owner (id) CROSS JOIN LATERAL (
    SELECT * FROM ({{own_memory_fitting_up}}) AS fitting
    WHERE (sorted_at, id) > (:after_at, :after_id)
    ORDER BY sorted_at, id
    LIMIT :limit
) AS page
ORDER BY sorted_at, page.id
LIMIT :limit

-- name: own_memory_read_to
-- Find the memory up to which all of a person's accounts were read, if not all there is was.
SELECT last.at, last.id FROM unnest(:user_ids::uuid[]) AS owner (id) CROSS JOIN LATERAL ({{own_memory_last}}) AS last
ORDER BY CASE :direction WHEN 1 THEN last.at END DESC, CASE :direction WHEN 1 THEN last.id END DESC, last.at, last.id
LIMIT 1

-- name: own_memory_used
-- List what fits by when it was last used in an answer to its person, the latest first where `direction` is 1, the earliest
-- where it is -1, after an item of this time and id (NULL: from the first). What was never used counts as used `never` before
-- it was written, which is before all that was; it alone is between `since` and `until`, and what was used is
-- between `wanted_since` and `wanted_until`.
WITH used AS MATERIALIZED ({{used_times}})
SELECT page.kind, page.id, page.user_id, page.namespace, page.visibility, page.shelf, page.label, page.text, page.key, page.at,
       page.updated_at, page.author, page.origin, page.vendors, page.tags, page.pending, page.trashed_at, page.used_at,
       page.order_at AS sorted_at
FROM unnest(:user_ids::uuid[]) AS owner (id) CROSS JOIN LATERAL (
    (SELECT items.*, used.at AS used_at, used.at AS order_at
     FROM used JOIN (
         SELECT {{own_memory_memory}}, created_at AS sorted_at FROM memories
         WHERE :memories AND tenant_id = :tenant_id AND user_id = owner.id AND id IN (SELECT id FROM used)
               AND superseded_by IS NULL AND merged_into IS NULL AND (expires_at IS NULL OR expires_at > :now)
         UNION ALL
         {{own_memory_others}}
     ) AS items ON items.id = used.id
     WHERE {{own_memory_fits}} AND items.at >= :wanted_since::timestamptz AND items.at < :wanted_until::timestamptz)
    UNION ALL
    (SELECT fitting.*, NULL, sorted_at - :never::interval FROM ({{own_memory_fitting}}) AS fitting
     WHERE :direction::int = 1 AND NOT EXISTS (SELECT FROM used WHERE used.id = fitting.id)
     ORDER BY sorted_at DESC, id DESC LIMIT :limit)
    UNION ALL
    (SELECT fitting.*, NULL, sorted_at - :never FROM ({{own_memory_fitting_up}}) AS fitting
     WHERE :direction = -1 AND NOT EXISTS (SELECT FROM used WHERE used.id = fitting.id)
     ORDER BY sorted_at, id LIMIT :limit)
) AS page
WHERE :after_at IS NULL
      OR CASE :direction WHEN 1 THEN (page.order_at, page.id) < (:after_at, :after_id)
                         ELSE (page.order_at, page.id) > (:after_at, :after_id) END
ORDER BY CASE :direction WHEN 1 THEN page.order_at END DESC, CASE :direction WHEN 1 THEN page.id END DESC, page.order_at, page.id
LIMIT :limit

-- name: own_memory_of_id
-- Find what has an id between two, also in the trash: what is not in it first, the latest first.
SELECT *, NULL::timestamptz AS used_at FROM (
    SELECT {{own_memory_memory}}, created_at AS sorted_at
    FROM memories
    WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND superseded_by IS NULL AND merged_into IS NULL
          AND (expires_at IS NULL OR expires_at > :now)
    UNION ALL
    SELECT others.* FROM unnest(:user_ids::uuid[]) AS owner (id) CROSS JOIN LATERAL ({{own_memory_others}}) AS others
) AS items
WHERE id BETWEEN :first AND :last
ORDER BY trashed_at IS NOT NULL, at DESC, id DESC
LIMIT :limit

-- part: own_memory_places
-- The namespaces and visibilities of the memories of a person (`user_id`: the account), each found by the index from the one
-- before it, whatever lies between.
WITH RECURSIVE found (user_id, namespace, visibility) AS (
    SELECT owner.id, first.namespace, first.visibility FROM unnest(:user_ids::uuid[]) AS owner (id) CROSS JOIN LATERAL (
        SELECT namespace, visibility FROM memories
        WHERE tenant_id = :tenant_id AND user_id = owner.id ORDER BY namespace, visibility LIMIT 1
    ) AS first
    UNION ALL
    SELECT found.user_id, next.namespace, next.visibility FROM found CROSS JOIN LATERAL (
        SELECT m.namespace, m.visibility FROM memories AS m
        WHERE m.tenant_id = :tenant_id AND m.user_id = found.user_id
              AND (m.namespace, m.visibility) > (found.namespace, found.visibility)
        ORDER BY m.namespace, m.visibility LIMIT 1
    ) AS next
)
SELECT * FROM found

-- name: own_memory_namespaces
-- In which namespaces a person's items are filed, also those that hold no more.
SELECT namespace FROM ({{own_memory_places}}) AS places
UNION
SELECT others.namespace FROM unnest(:user_ids::uuid[]) AS owner (id) CROSS JOIN LATERAL ({{own_memory_others}}) AS others
ORDER BY 1

-- name: own_memory_labels
-- Count a person's current items by shelf, and those on shelves by the tool that wrote them, by tag, by author and by
-- namespace: of each of these the `limit` with most. The shelf `trash` is the trash. The label `more` says that of an account
-- the latest `most` memories were counted, and perhaps not all.
WITH items AS MATERIALIZED (
    SELECT shelf, origin, namespace, author, tags, count(*) AS count
    FROM unnest(:user_ids::uuid[]) AS owner (id) CROSS JOIN LATERAL (
        SELECT CASE WHEN trashed_at IS NOT NULL THEN 'trash' ELSE {{own_memory_shelf}} END AS shelf, origin, namespace, author, tags
        FROM (SELECT * FROM ({{own_memory_reach}}) AS reach ORDER BY created_at DESC, id DESC LIMIT :most::bigint) AS memories
        WHERE superseded_by IS NULL AND merged_into IS NULL AND (expires_at IS NULL OR expires_at > :now::timestamptz)
        UNION ALL
        SELECT shelf, origin, namespace, author, tags FROM ({{own_memory_others}}) AS others
    ) AS rows
    GROUP BY 1, 2, 3, 4, 5
), shelved AS (
    SELECT * FROM items WHERE shelf NOT IN ('trash', 'waiting')
), counted AS (
    SELECT 'shelf' AS label, shelf AS value, sum(count) AS count FROM items GROUP BY shelf
    UNION ALL
    SELECT 'tool', origin, sum(count) FROM shelved GROUP BY origin
    UNION ALL
    SELECT 'author', author, sum(count) FROM shelved GROUP BY author
    UNION ALL
    SELECT 'namespace', namespace, sum(count) FROM shelved GROUP BY namespace
    UNION ALL
    SELECT 'tag', tag, sum(count) FROM shelved CROSS JOIN LATERAL unnest(tags) AS tag GROUP BY tag
    UNION ALL
    SELECT 'more', '', count(*) FROM unnest(:user_ids::uuid[]) AS owner (id) CROSS JOIN LATERAL ({{own_memory_last}}) AS earliest
    HAVING count(*) > 0
), ranked AS (
    SELECT label, value, count, row_number() OVER (PARTITION BY label ORDER BY count DESC, value) AS n FROM counted
)
SELECT label, value, count::bigint AS count FROM ranked WHERE n <= :limit ORDER BY label, n

-- name: own_memory_times
-- Count what fits by the quarter of an hour in which it was written, and by shelf: days of every time zone begin on such a
-- quarter. The shelf `more` has the time up to which an account's memories were read, where that was not all of them.
SELECT date_bin('15 minutes', at, '2000-01-01 00:00:00Z') AS at, shelf, count(*) AS count
FROM unnest(:user_ids::uuid[]) AS owner (id) CROSS JOIN LATERAL ({{own_memory_fitting}}) AS fitting
GROUP BY 1, 2
UNION ALL
SELECT last.at, 'more', 0 FROM unnest(:user_ids::uuid[]) AS owner (id) CROSS JOIN LATERAL ({{own_memory_last}}) AS last
WHERE :most IS NOT NULL
ORDER BY 1, 2

-- name: own_memory_vectors
-- Read the vectors of the latest of what fits, of those that have one, with what is shown of each.
SELECT page.* FROM unnest(:user_ids::uuid[]) AS owner (id) CROSS JOIN LATERAL (
    SELECT f.id, f.user_id, f.namespace, f.shelf, substr(f.text, 1, :chars::int) AS text, f.at, r.embedding AS vector
    FROM ({{own_memory_fitting}}) AS f
    JOIN recall_index AS r ON r.tenant_id = :tenant_id AND r.id = f.id AND r.part = 1 AND r.embedding IS NOT NULL
    ORDER BY f.sorted_at DESC, f.id DESC
    LIMIT :limit
) AS page
ORDER BY at DESC, id DESC
LIMIT :limit

-- name: own_memory_twins
-- The landmarks that a decision of a person is listed for, as `own_memory_rows` says.
SELECT l.id FROM memories AS m
JOIN landmarks AS l ON l.tenant_id = :tenant_id AND l.namespace = m.namespace AND l.text = m.text
WHERE m.tenant_id = :tenant_id AND m.id = :id AND m.user_id = ANY (:user_ids::uuid[]) AND m.kind = 'decision'
      AND l.user_id = ANY (:user_ids::uuid[]) AND l.state <> 'retired'
ORDER BY l.id

-- name: own_memory_traces
-- What an item of a person was made from, of the person's own messages, and the answers that were made of it, not those whose
-- prompts merely had it: those to the person's own questions, and those in rooms that the person may read now (`joined_ids`: those that they are in; `public`: they may
-- enter public ones), each with its place on the platform. A private room that they are not in has no name. From whose file each
-- came, `sources_uploaded` says.
WITH sources AS (
    SELECT 'source' AS part, m.id, m.at, m.text, m.external_id, m.conversation_id, true AS own, '' AS asker FROM lineage AS l
    JOIN messages AS m ON m.tenant_id = :tenant_id AND m.id = l.source_id AND m.user_id = ANY (:user_ids::uuid[])
    WHERE l.tenant_id = :tenant_id AND l.item_id = :id AND l.source_kind = 'message'
), answers AS (
    SELECT 'answer', q.id, t.answered_at, q.text, q.external_id, q.conversation_id, q.user_id = ANY (:user_ids::uuid[]), u.name
    FROM lineage AS l
    JOIN turns AS t ON t.tenant_id = :tenant_id AND t.id = l.item_id
    JOIN messages AS q ON q.tenant_id = :tenant_id AND q.id = t.message_id AND NOT q.ephemeral
    JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = q.user_id
    JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = t.conversation_id
    JOIN conversations AS room ON room.tenant_id = :tenant_id AND room.id = coalesce(c.room_id, c.id)
    WHERE l.tenant_id = :tenant_id AND l.source_id = :id AND l.item_kind = 'turn' AND t.answered_at IS NOT NULL
          AND EXISTS (SELECT FROM lineage AS made WHERE made.tenant_id = :tenant_id AND made.source_id = :id
                      AND made.item_kind = 'answer' AND made.item_id = t.reply_id)
          AND (q.user_id = ANY (:user_ids::uuid[])
               OR room.kind = 'room' AND q.namespace = room.namespace AND (NOT room.private AND :public::boolean OR room.id = ANY (:joined_ids::uuid[])))
)
SELECT s.part, s.id, s.at, s.text, c.kind, s.own, s.asker,
       CASE WHEN room.private AND NOT room.id = ANY (:joined_ids::uuid[]) THEN '' ELSE coalesce(c.title, c.name) END AS place,
       s.external_id, c.platform, c.workspace, coalesce(room.name, c.name) AS name, c.thread,
       coalesce(room.id, c.id) AS room_id, coalesce(room.private, c.private) AS private,
       room.id IS NULL OR NOT room.private AND :public::boolean OR room.id = ANY (:joined_ids::uuid[]) AS may_enter
FROM (SELECT * FROM sources UNION ALL SELECT * FROM answers) AS s
JOIN conversations AS c ON c.tenant_id = :tenant_id AND c.id = s.conversation_id
LEFT JOIN conversations AS room
    ON room.tenant_id = :tenant_id AND room.id = coalesce(c.room_id, c.id) AND room.kind = 'room'
ORDER BY 3 DESC
LIMIT :limit
