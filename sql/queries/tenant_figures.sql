-- name: tenant_people
-- List the people of a tenant, each user by itself, those who were known first before the others, with figures of what is
-- theirs: keys that are valid now, entries without those in the trash, of which at most so many (`most`; NULL: all) are
-- counted, operations since a month, when a key or a browser of theirs was last used, and on which platforms they are known.
-- Never what anything says.
SELECT u.id, u.name, u.admin, u.opted_out, u.disabled_at IS NOT NULL AS disabled, u.person_id AS person, u.created_at,
       ARRAY(SELECT DISTINCT i.platform FROM identities AS i WHERE i.tenant_id = :tenant_id AND i.user_id = u.id
             AND i.platform <> 'rest' ORDER BY 1) AS platforms,
       (SELECT count(*) FROM api_keys AS k WHERE k.tenant_id = :tenant_id AND k.user_id = u.id AND k.revoked_at IS NULL
        AND (k.expires_at IS NULL OR k.expires_at > :now)) AS keys,
       (SELECT count(*) FROM (
            SELECT FROM memories AS m WHERE m.tenant_id = :tenant_id AND m.user_id = u.id AND m.trashed_at IS NULL
            AND m.superseded_by IS NULL AND m.merged_into IS NULL AND m.origin <> 'extracted'
            AND (starts_with(m.namespace, 'entries:') OR starts_with(m.namespace, 'team:') OR starts_with(m.namespace, 'project:'))
            LIMIT :most::bigint) AS counted) AS entries,
       (SELECT coalesce(sum(t.count), 0)::bigint FROM operation_totals AS t
        WHERE t.tenant_id = :tenant_id AND t.user_id = u.id AND t.month >= :month) AS operations,
       greatest((SELECT max(k.last_used_at) FROM api_keys AS k WHERE k.tenant_id = :tenant_id AND k.user_id = u.id),
                (SELECT max(w.last_used_at) FROM web_sessions AS w WHERE w.tenant_id = :tenant_id AND w.user_id = u.id))
       AS last_used_at
FROM users AS u
WHERE u.tenant_id = :tenant_id AND u.name <> :nameless
      AND (:after::timestamptz IS NULL OR (u.created_at, u.id) > (:after, :after_id::uuid))
ORDER BY u.created_at, u.id
LIMIT :limit

-- name: tenant_figures
-- Count what a tenant has of each kind that is asked for: people, what opens their memories, places, and what is stored.
SELECT name, CASE name
    WHEN 'people' THEN (SELECT count(*) FROM users WHERE tenant_id = :tenant_id AND name <> :nameless)
    WHEN 'admins' THEN (SELECT count(*) FROM users WHERE tenant_id = :tenant_id AND admin)
    WHEN 'keys_of_people' THEN (SELECT count(*) FROM api_keys WHERE tenant_id = :tenant_id AND revoked_at IS NULL AND vendor IS NULL
         AND (expires_at IS NULL OR expires_at > :now))
    WHEN 'keys_of_tools' THEN (SELECT count(*) FROM api_keys WHERE tenant_id = :tenant_id AND revoked_at IS NULL AND vendor IS NOT NULL
         AND (expires_at IS NULL OR expires_at > :now))
    WHEN 'web_sessions' THEN (SELECT count(*) FROM web_sessions WHERE tenant_id = :tenant_id AND expires_at > :now)
    WHEN 'teams' THEN (SELECT count(*) FROM teams WHERE tenant_id = :tenant_id)
    WHEN 'projects' THEN (SELECT count(*) FROM projects WHERE tenant_id = :tenant_id)
    WHEN 'rooms' THEN (SELECT count(*) FROM conversations WHERE tenant_id = :tenant_id AND kind = 'room')
    WHEN 'dms_and_sessions' THEN (SELECT count(*) FROM conversations WHERE tenant_id = :tenant_id AND kind IN ('dm', 'session'))
    WHEN 'messages' THEN (SELECT count(*) FROM messages WHERE tenant_id = :tenant_id)
    WHEN 'answers_good' THEN (SELECT count(*) FROM turns WHERE tenant_id = :tenant_id AND rating = 1)
    WHEN 'answers_bad' THEN (SELECT count(*) FROM turns WHERE tenant_id = :tenant_id AND rating = -1)
    WHEN 'memories' THEN (SELECT count(*) FROM memories WHERE tenant_id = :tenant_id AND trashed_at IS NULL)
    WHEN 'in_trash' THEN (SELECT count(*) FROM memories WHERE tenant_id = :tenant_id AND trashed_at IS NOT NULL)
    WHEN 'facts' THEN (SELECT count(*) FROM facts WHERE tenant_id = :tenant_id AND valid_to IS NULL)
    WHEN 'pending' THEN (SELECT count(*) FROM quarantine WHERE tenant_id = :tenant_id AND state = 'pending')
END AS count FROM unnest(:names::text[]) AS name

-- part: place_admins_rows
-- The admins of a project or a team `p` whose name was not erased (`nameless`), each person once.
SELECT (array_agg(u.id ORDER BY u.name, u.id))[1] AS id, min(u.name) AS name
FROM (SELECT m.user_id FROM project_members AS m
      WHERE m.tenant_id = :tenant_id AND m.project_id = p.id AND m.role = 'admin'
      UNION ALL
      SELECT m.user_id FROM team_members AS m
      WHERE m.tenant_id = :tenant_id AND m.team_id = p.id AND m.role = 'admin') AS led
JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = led.user_id AND u.name <> :nameless
GROUP BY coalesce(u.person_id, u.id)

-- name: tenant_places
-- List the projects and teams of a tenant, of one `kind` or both (NULL), the newest first, with how many people and rooms
-- are in each, and who its admins are. The name of a team is told (else NULL) where it is one of `teams`, or has no admin.
-- `words`: in the name that is told, or in that of an admin; `orphaned`: those without an admin alone; `place_id`: that one
-- alone. Never what is filed there.
SELECT p.kind, p.id, p.name, p.isolated, p.created_at,
       (SELECT count(DISTINCT coalesce(u.person_id, u.id))
        FROM (SELECT m.user_id FROM project_members AS m WHERE m.tenant_id = :tenant_id AND m.project_id = p.id
              UNION ALL
              SELECT m.user_id FROM team_members AS m WHERE m.tenant_id = :tenant_id AND m.team_id = p.id) AS inside
        JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = inside.user_id) AS members,
       (SELECT count(*) FROM conversations AS c
        WHERE c.tenant_id = :tenant_id AND c.project_id = p.id AND c.kind = 'room') AS rooms,
       ARRAY(SELECT a.id FROM ({{place_admins_rows}}) AS a ORDER BY a.name, a.id) AS admin_ids,
       ARRAY(SELECT a.name FROM ({{place_admins_rows}}) AS a ORDER BY a.name, a.id) AS admin_names
FROM (SELECT p.kind, p.id, p.isolated, p.created_at,
             CASE WHEN p.kind = 'project' OR p.id = ANY (:teams::uuid[])
                       OR NOT EXISTS ({{place_admins_rows}}) THEN p.name END AS name
      FROM (SELECT 'project' AS kind, id, slug AS name, isolated, created_at FROM projects WHERE tenant_id = :tenant_id
            UNION ALL
            SELECT 'team', id, name, false, created_at FROM teams WHERE tenant_id = :tenant_id) AS p
      WHERE (:kind::text IS NULL OR p.kind = :kind) AND (:place_id::uuid IS NULL OR p.id = :place_id)
            AND (:after::timestamptz IS NULL OR (p.created_at, p.id) < (:after, :after_id::uuid))
            AND (NOT :orphaned::boolean OR NOT EXISTS ({{place_admins_rows}}))) AS p
WHERE :words::text IS NULL OR strpos(lower(p.name), :words) > 0
      OR EXISTS (SELECT FROM ({{place_admins_rows}}) AS a WHERE strpos(lower(a.name), :words) > 0)
ORDER BY p.created_at DESC, p.id DESC
LIMIT :limit

-- name: tenant_days
-- Count what happened in a tenant on each day, of which `starts` has when each begins, and when the last one ends: answers,
-- those that failed, how many seconds half of the answers and 95 of 100 took at most (NULL: there were none), messages that
-- people sent (without what was imported), and memories that were learnt from them. `day`: its place among them.
SELECT days.day, coalesce(answered.answers, 0) AS answers, coalesce(answered.failures, 0) AS failures,
       answered.seconds[1] AS half_seconds, answered.seconds[2] AS most_seconds,
       coalesce(said.count, 0) AS messages, coalesce(learnt.count, 0) AS learnt
FROM generate_series(0, cardinality(:starts::timestamptz[]) - 2) AS days (day)
LEFT JOIN (
    SELECT width_bucket(answered_at, :starts::timestamptz[]) - 1 AS day,
           count(*) FILTER (WHERE failure IS NULL) AS answers, count(*) FILTER (WHERE failure IS NOT NULL) AS failures,
           percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY extract(epoch FROM answered_at - queued_at)::double precision)
               FILTER (WHERE failure IS NULL) AS seconds
    FROM turns WHERE tenant_id = :tenant_id AND answered_at >= :since AND answered_at < :until
    GROUP BY 1
) AS answered USING (day)
LEFT JOIN (
    SELECT width_bucket(m.at, :starts::timestamptz[]) - 1 AS day, count(*) AS count
    FROM conversations AS c
    JOIN messages AS m ON m.tenant_id = :tenant_id AND m.conversation_id = c.id
    WHERE c.tenant_id = :tenant_id AND m.at >= :since AND m.at < :until AND m.agent_id IS NULL AND NOT m.ephemeral
          AND m.import_id IS NULL
    GROUP BY 1
) AS said USING (day)
LEFT JOIN (
    SELECT width_bucket(created_at, :starts::timestamptz[]) - 1 AS day, count(*) AS count
    FROM memories
    WHERE tenant_id = :tenant_id AND origin = 'extracted' AND created_at >= :since AND created_at < :until
    GROUP BY 1
) AS learnt USING (day)
ORDER BY days.day

-- name: tenant_waiting
-- Count the questions of a tenant that are not answered yet, with when the oldest of them came (NULL: there is none).
SELECT count(*) AS questions, min(queued_at) AS since FROM turns WHERE tenant_id = :tenant_id AND state = 'queued'
