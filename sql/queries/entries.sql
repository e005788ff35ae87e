-- name: entry_insert
-- Add an entry. One that is known stays unchanged. `metadata` is JSON text.
INSERT INTO memories (tenant_id, id, namespace, user_id, visibility, allowed_vendors, kind, key, title, text, content, tags,
                      metadata, session, author, origin, trust, created_at, expires_at)
VALUES (:tenant_id, :id, :namespace, :user_id, :visibility, :vendors::text[], :kind, :key, :title, :text, :content,
        :tags::text[], :metadata::json, :session, :author, :origin, :trust, :now, :expires_at)
ON CONFLICT DO NOTHING
RETURNING id

-- name: entry_update
-- Give an entry new values, if it still has a version; `said_at` is when all of them were written (NULL: some were before).
-- Returns the next version.
UPDATE memories
SET allowed_vendors = :vendors::text[], kind = :kind, key = :key, title = :title, text = :text, content = :content,
    tags = :tags::text[], metadata = :metadata::json, session = :session, expires_at = :expires_at, updated_at = :now,
    said_at = coalesce(:said_at::timestamptz, said_at), version = version + 1, history = with_version(history, version + 1, :now, :by, :changed::text[])
WHERE tenant_id = :tenant_id AND id = :id AND version = :version AND trashed_at IS NULL
RETURNING version

-- name: entry_say_again
-- Note that all that an entry says was written again.
UPDATE memories SET said_at = :now WHERE tenant_id = :tenant_id AND id = :id

-- name: entry_file
-- File an entry under another access tag, also in the recall index.
WITH moved AS (
    UPDATE memories SET namespace = :namespace, visibility = :visibility, user_id = :user_id, updated_at = :now,
        version = version + 1, history = with_version(history, version + 1, :now, :by, :changed::text[])
    WHERE tenant_id = :tenant_id AND id = :id AND version = :version AND trashed_at IS NULL RETURNING id
), found AS (
    UPDATE recall_index AS r SET namespace = :namespace, visibility = :visibility, user_id = :user_id
    FROM moved WHERE r.tenant_id = :tenant_id AND r.id = moved.id
), terms AS (
    UPDATE recall_terms AS t SET namespace = :namespace, visibility = :visibility, user_id = :user_id
    FROM moved WHERE t.tenant_id = :tenant_id AND t.item_id = moved.id
)
SELECT id FROM moved

-- name: entries_return
-- File everything that a team or a project holds of people under their own entries, also in the recall index, whatever has
-- become of it. Where somebody has another one with its key there, it loses the key. Returns whose it was, and how many.
WITH moved AS (
    UPDATE memories AS m
    SET namespace = 'entries:' || m.user_id::text, visibility = 'private', updated_at = :now, version = m.version + 1,
        history = with_version(history, version + 1, :now, :by, :changed::text[]),
        key = CASE WHEN EXISTS (SELECT FROM memories AS o WHERE o.tenant_id = :tenant_id AND o.user_id = m.user_id
                                AND o.key = m.key AND o.origin = m.origin AND o.trashed_at IS NULL
                                AND o.superseded_by IS NULL AND o.merged_into IS NULL
                                AND (o.namespace = 'entries:' || m.user_id::text OR starts_with(o.namespace, 'team:'))
                                AND o.namespace <> :namespace)
              THEN NULL ELSE m.key END
    WHERE m.tenant_id = :tenant_id AND m.namespace = :namespace AND m.user_id IS NOT NULL
    RETURNING m.id, m.user_id, m.namespace
), found AS (
    UPDATE recall_index AS r SET namespace = moved.namespace, visibility = 'private', user_id = moved.user_id
    FROM moved WHERE r.tenant_id = :tenant_id AND r.id = moved.id
), terms AS (
    UPDATE recall_terms AS t SET namespace = moved.namespace, visibility = 'private', user_id = moved.user_id
    FROM moved WHERE t.tenant_id = :tenant_id AND t.item_id = moved.id
)
SELECT user_id, count(*) AS count FROM moved GROUP BY user_id ORDER BY user_id

-- name: entry_trash
-- Put an entry into the trash (`trashed_at`) or take it out again (NULL), if it still has a version. Returns the next one.
UPDATE memories SET trashed_at = :trashed_at, updated_at = :now, version = version + 1, history = with_version(history, version + 1, :now, :by, :changed::text[])
WHERE tenant_id = :tenant_id AND id = :id AND version = :version
      AND (trashed_at IS NULL) <> (:trashed_at::timestamptz IS NULL)
RETURNING version

-- name: entry_by_key
-- Find the entry that somebody, or one tool for them, wrote with a key in these namespaces. One that they may not read any
-- more is not found.
SELECT id FROM memories
WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND key = :key AND origin = :origin
      AND namespace = ANY (:namespaces::text[])
      AND may_read(namespace, visibility, user_id, allowed_vendors, :pooled::text[], :visibilities::text[],
          :readers::uuid[], :vendor)
      AND superseded_by IS NULL AND merged_into IS NULL AND trashed_at IS NULL
      AND (expires_at IS NULL OR expires_at > :now)
ORDER BY created_at DESC, id DESC
LIMIT 1

-- part: entry_rows
-- Read all entries of the tenant, for statements that include this one and say which of them may be read.
SELECT m.id, m.namespace, m.visibility, m.user_id, m.allowed_vendors AS vendors, m.kind, m.key, m.title, m.text, m.content,
       m.tags, m.metadata, m.session, m.author, m.origin, m.trust, m.created_at, m.updated_at, m.expires_at, m.trashed_at,
       m.version, m.history, octet_length(coalesce(m.content, m.text)) AS bytes,
       starts_with(m.namespace, 'team:') AND NOT EXISTS (
           SELECT FROM team_members AS t
           JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = t.user_id
           JOIN users AS o ON o.tenant_id = :tenant_id AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
           WHERE t.tenant_id = :tenant_id AND t.team_id::text = substr(m.namespace, 6) AND o.id = m.user_id) AS former
FROM memories AS m
WHERE m.tenant_id = :tenant_id AND m.superseded_by IS NULL AND m.merged_into IS NULL

-- name: entries_get
-- Get those of some entries that a viewer may read; those in the trash and expired ones only if they are of `owners`.
SELECT * FROM ({{entry_rows}}) AS e
WHERE e.id = ANY (:ids::uuid[]) AND e.namespace = ANY (:namespaces::text[])
      AND may_read(e.namespace, e.visibility, e.user_id, e.vendors, :pooled::text[], :visibilities::text[],
          :readers::uuid[], :vendor)
      AND (e.trashed_at IS NULL AND (e.expires_at IS NULL OR e.expires_at > :now) OR e.user_id = ANY (:owners::uuid[]))

-- name: entry_to_replace
-- Find the entry whose next version was approved: the one of its id, or the one that the same writer stored with the same
-- key in the same place.
SELECT * FROM ({{entry_rows}}) AS e
WHERE (e.id = :id OR e.key = :key) AND e.user_id = :user_id AND e.namespace = :namespace AND e.origin = :origin
      AND (e.origin = 'api' OR e.vendors && ARRAY['*', :origin]) AND e.trashed_at IS NULL
      AND (e.expires_at IS NULL OR e.expires_at > :now)
ORDER BY e.id = :id DESC, e.created_at DESC LIMIT 1

-- part: entry_wanted
-- What a list, a count and a sorted list of entries ask of each (`m`); a filter that is NULL fits all.
m.superseded_by IS NULL AND m.merged_into IS NULL
AND (m.trashed_at IS NOT NULL) = :trashed AND (NOT :trashed OR m.user_id = ANY (:owners::uuid[]))
AND (:trashed OR (m.expires_at IS NULL OR m.expires_at > :now) <> :expired)
AND (NOT :expired OR m.user_id = ANY (:owners::uuid[]))
AND (:authors::uuid[] IS NULL OR m.user_id = ANY (:authors))
AND (:kinds::text[] IS NULL OR m.kind = ANY (:kinds))
AND (:origins::text[] IS NULL OR m.origin = ANY (:origins))
AND (:tags::text[] IS NULL OR m.tags @> :tags)
AND (:session::text IS NULL OR m.session = :session)
AND (:since::timestamptz IS NULL OR m.created_at >= :since)
AND (:until::timestamptz IS NULL OR m.created_at < :until)
AND (:words::text IS NULL OR m.text ILIKE :words OR m.title ILIKE :words OR m.key ILIKE :words)

-- name: entries_list
-- List the entries that a viewer may read and that fit some filters, newest first. Those in
-- the trash (`trashed`) and those that have expired (`expired`) are listed to their owners alone. `words` is a pattern of
-- LIKE. Of the texts the first `chars` characters are read, which count as all that is shown of them; `content` only where
-- all is (NULL).
SELECT page.*, page.created_at AS sorted_at, substr(page.whole_text, 1, coalesce(:chars::int, 1000000)) AS text,
       CASE WHEN :chars::int IS NULL THEN page.whole_content END AS content,
       octet_length(coalesce(page.whole_content, page.whole_text)) AS bytes,
       starts_with(page.namespace, 'team:') AND NOT EXISTS (
           SELECT FROM team_members AS t
           JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = t.user_id
           JOIN users AS o ON o.tenant_id = :tenant_id AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
           WHERE t.tenant_id = :tenant_id AND t.team_id::text = substr(page.namespace, 6) AND o.id = page.user_id) AS former
FROM (
    SELECT found.* FROM unnest(:namespaces::text[]) AS scope (namespace)
    CROSS JOIN LATERAL (
        SELECT m.id, m.namespace, m.visibility, m.user_id, m.allowed_vendors AS vendors, m.kind, m.key, m.title,
               m.text AS whole_text, m.content AS whole_content, m.tags, m.metadata, m.session, m.author, m.origin, m.trust,
               m.created_at, m.updated_at, m.expires_at, m.trashed_at, m.version
        FROM memories AS m
        WHERE m.tenant_id = :tenant_id AND m.namespace = scope.namespace
              AND may_read(m.namespace, m.visibility, m.user_id, m.allowed_vendors, :pooled::text[], :visibilities::text[],
                  :readers::uuid[], :vendor)
              AND (m.created_at, m.id) < (coalesce(:before_at::timestamptz, 'infinity'),
                                          coalesce(:before_id::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
              AND {{entry_wanted}}
        ORDER BY m.created_at DESC, m.id DESC
        LIMIT :limit::bigint + :offset::bigint
    ) AS found
    ORDER BY found.created_at DESC, found.id DESC
    LIMIT :limit OFFSET :offset
) AS page
ORDER BY page.created_at DESC, page.id DESC

-- part: entries_fitting
-- The entries that `entries_list` lists, in no order, for statements that include this one.
SELECT m.* FROM memories AS m
WHERE m.tenant_id = :tenant_id AND m.namespace = ANY (:namespaces::text[])
      AND may_read(m.namespace, m.visibility, m.user_id, m.allowed_vendors, :pooled::text[], :visibilities::text[],
          :readers::uuid[], :vendor)
      AND {{entry_wanted}}

-- name: entries_count
-- Count the entries that `entries_list` lists, by kind, with the bytes of their contents.
SELECT m.kind, count(*) AS count, sum(octet_length(coalesce(m.content, m.text))) AS bytes
FROM ({{entries_fitting}}) AS m
GROUP BY m.kind
ORDER BY m.kind

-- name: entries_sorted
-- List what `entries_list` lists in another order: `by` when they were created, updated or last used in an answer to one of
-- `user_ids` (1970: never), the latest first where `direction` is 1, the earliest where it is -1.
SELECT m.id, m.namespace, m.visibility, m.user_id, m.allowed_vendors AS vendors, m.kind, m.key, m.title,
       substr(m.text, 1, coalesce(:chars::int, 1000000)) AS text, CASE WHEN :chars::int IS NULL THEN m.content END AS content,
       m.tags, m.metadata, m.session, m.author, m.origin, m.trust, m.created_at, m.updated_at, m.expires_at, m.trashed_at,
       m.version, octet_length(coalesce(m.content, m.text)) AS bytes, sorted.at AS sorted_at,
       starts_with(m.namespace, 'team:') AND NOT EXISTS (
           SELECT FROM team_members AS t
           JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = t.user_id
           JOIN users AS o ON o.tenant_id = :tenant_id AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
           WHERE t.tenant_id = :tenant_id AND t.team_id::text = substr(m.namespace, 6) AND o.id = m.user_id) AS former
FROM ({{entries_fitting}}) AS m
LEFT JOIN ({{used_times}}) AS used ON used.id = m.id
CROSS JOIN LATERAL (SELECT CASE :by::text WHEN 'created' THEN m.created_at
                                WHEN 'updated' THEN coalesce(m.updated_at, m.created_at)
                                ELSE coalesce(used.at, timestamptz 'epoch') END AS at) AS sorted
WHERE :after_at::timestamptz IS NULL
      OR (:direction::int * date_part('epoch', sorted.at), m.id) < (:direction * date_part('epoch', :after_at), :after_id::uuid)
ORDER BY :direction * date_part('epoch', sorted.at) DESC, m.id DESC
LIMIT :limit OFFSET :offset

-- name: entries_own_ids
-- List the ids of the entries that a person owns, of what they may read, newest first; those in the trash and expired ones
-- too.
SELECT m.id FROM memories AS m
WHERE m.tenant_id = :tenant_id AND m.namespace = ANY (:namespaces::text[]) AND m.user_id = ANY (:user_ids::uuid[])
      AND may_read(m.namespace, m.visibility, m.user_id, m.allowed_vendors, :pooled::text[], :visibilities::text[],
          :readers::uuid[], :vendor)
      AND m.superseded_by IS NULL AND m.merged_into IS NULL
ORDER BY m.created_at DESC, m.id DESC

-- name: entries_own
-- Read the entries that a person owns, of what they may read, that have one of these ids or keys; those in the trash and
-- expired ones too.
SELECT * FROM ({{entry_rows}}) AS e
WHERE (e.id = ANY (:ids::uuid[]) OR e.key = ANY (:keys::text[])) AND e.namespace = ANY (:namespaces::text[])
      AND e.user_id = ANY (:user_ids::uuid[])
      AND may_read(e.namespace, e.visibility, e.user_id, e.vendors, :pooled::text[], :visibilities::text[],
          :readers::uuid[], :vendor)
