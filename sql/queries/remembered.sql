-- name: remembered_counts
-- Count what one viewer may read that holds now, by namespace and kind, with the time of the latest of each. Of proposed
-- decisions those that are younger than `lifetime`, at most `max_proposed`. Memories are read by the index of their namespace
-- (LIMIT, also without a number): the plan that is kept would read those of all namespaces where most are in one.
SELECT namespace, 'fact' AS kind, count(*) AS count, max(valid_from) AS last_at FROM facts
WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[])
      AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[], :vendor)
      AND valid_from <= :now AND (valid_to IS NULL OR valid_to > :now)
GROUP BY 1
UNION ALL
SELECT namespace, CASE state WHEN 'pinned' THEN 'decision' ELSE 'proposal' END,
       CASE state WHEN 'pinned' THEN count(*) ELSE least(count(*), :max_proposed) END, max(decided_at)
FROM landmarks
WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[])
      AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[], :vendor)
      AND (state = 'pinned' OR state = 'proposed' AND decided_at > :now::timestamptz - :lifetime::interval)
GROUP BY namespace, state
UNION ALL
SELECT namespace, 'memory', count(*), max(created_at)
FROM (SELECT DISTINCT unnest(:namespaces::text[]) AS name) AS place CROSS JOIN LATERAL (
    SELECT namespace, visibility, user_id, allowed_vendors, created_at, trashed_at, superseded_by, merged_into, valid_to, expires_at
    FROM memories
    WHERE tenant_id = :tenant_id AND namespace = place.name
    ORDER BY created_at DESC, id DESC
    LIMIT (SELECT NULL::bigint)
) AS memories
WHERE may_read(namespace, visibility, user_id, allowed_vendors, :pooled::text[], :visibilities::text[], :readers::uuid[], :vendor)
      AND trashed_at IS NULL AND superseded_by IS NULL AND merged_into IS NULL
      AND (valid_to IS NULL OR valid_to > :now) AND (expires_at IS NULL OR expires_at > :now)
GROUP BY 1
UNION ALL
SELECT namespace, tier, count(*), max(starts_at) FROM summaries
WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[]) AND tier IN ('day', 'week')
      AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[], :vendor)
GROUP BY namespace, tier
ORDER BY 1, 2

-- name: remembered_memories
-- List the memories that one viewer may read that hold now, newest first.
SELECT id, namespace, visibility, user_id, allowed_vendors AS vendors, kind, text, author, created_at AS at FROM memories
WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[])
      AND may_read(namespace, visibility, user_id, allowed_vendors, :pooled::text[], :visibilities::text[], :readers::uuid[],
          :vendor)
      AND trashed_at IS NULL AND superseded_by IS NULL AND merged_into IS NULL
      AND (valid_to IS NULL OR valid_to > :now) AND (expires_at IS NULL OR expires_at > :now)
ORDER BY created_at DESC, id DESC
LIMIT :limit

-- name: message_days
-- Count people's messages in a room with its public threads by day, as far as one viewer may read them, without those of
-- people who opted out. `starts`: when each day begins, and when the last one ends. `day`: the place of a day among them.
SELECT width_bucket(m.at, :starts::timestamptz[]) - 1 AS day, count(*) AS count
FROM conversations AS c
JOIN messages AS m ON m.tenant_id = :tenant_id AND m.conversation_id = c.id
JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = m.user_id AND NOT u.opted_out
WHERE c.tenant_id = :tenant_id AND (c.id = :room_id OR c.room_id = :room_id) AND m.at >= :since
      AND m.at < :until
      AND NOT m.ephemeral AND m.agent_id IS NULL AND m.namespace = ANY (:namespaces::text[])
      AND may_read(m.namespace, m.visibility, m.user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[], :vendor)
GROUP BY 1
ORDER BY 1

-- name: changes_readable
-- List what was lately written for teams and projects, set and decided, as far as one viewer may read it, and who joined the
-- teams whose entries they may read, newest first. Of a decision that was retired, who did that.
SELECT * FROM (
    SELECT id, namespace, visibility, user_id, allowed_vendors AS vendors,
           CASE WHEN updated_at IS NULL THEN 'written' ELSE 'changed' END AS kind, coalesce(title, left(text, 400)) AS text,
           author, coalesce(updated_at, created_at) AS at
    FROM memories
    WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[])
          AND (starts_with(namespace, 'team:') OR starts_with(namespace, 'project:'))
          AND may_read(namespace, visibility, user_id, allowed_vendors, :pooled::text[], :visibilities::text[],
              :readers::uuid[], :vendor)
          AND coalesce(updated_at, created_at) >= :since AND trashed_at IS NULL AND superseded_by IS NULL
          AND merged_into IS NULL AND (expires_at IS NULL OR expires_at > :now)
    UNION ALL
    SELECT id, namespace, visibility, user_id, '{*}', 'fact', key || ' = ' || (value #>> '{}'), author,
           valid_from
    FROM facts
    WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[])
          AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[], :vendor)
          AND valid_from >= :since AND valid_from <= :now
    UNION ALL
    SELECT id, namespace, visibility, user_id, '{*}',
           CASE state WHEN 'pinned' THEN 'decision' WHEN 'proposed' THEN 'proposal' ELSE 'retired' END, text,
           CASE state WHEN 'retired' THEN coalesce(settled_by, author) ELSE author END, coalesce(retired_at, decided_at)
    FROM landmarks
    WHERE tenant_id = :tenant_id AND namespace = ANY (:namespaces::text[])
          AND may_read(namespace, visibility, user_id, NULL, :pooled::text[], :visibilities::text[], :readers::uuid[], :vendor)
          AND coalesce(retired_at, decided_at) >= :since
    UNION ALL
    SELECT m.user_id, team.namespace, 'public', m.user_id, '{*}', 'joined', '', u.name, m.joined_at
    FROM unnest(:namespaces::text[]) AS team (namespace)
    JOIN team_members AS m ON m.tenant_id = :tenant_id
         AND m.team_id = CASE WHEN starts_with(team.namespace, 'team:') THEN substr(team.namespace, 6)::uuid END
    JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = m.user_id
    WHERE m.joined_at >= :since
) AS changes
ORDER BY at DESC, id
LIMIT :limit
