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

-- name: places_without_admin
-- List the projects and teams that nobody is an admin of whose name was not erased (`nameless`), projects first, by name.
SELECT 'project' AS kind, p.id, p.slug AS name, p.isolated, p.created_at FROM projects AS p
WHERE p.tenant_id = :tenant_id
      AND NOT EXISTS (SELECT FROM project_members AS m JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = m.user_id
                      WHERE m.tenant_id = :tenant_id AND m.project_id = p.id AND m.role = 'admin' AND u.name <> :nameless)
UNION ALL
SELECT 'team', t.id, t.name, false, t.created_at FROM teams AS t
WHERE t.tenant_id = :tenant_id
      AND NOT EXISTS (SELECT FROM team_members AS m JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = m.user_id
                      WHERE m.tenant_id = :tenant_id AND m.team_id = t.id AND m.role = 'admin' AND u.name <> :nameless)
ORDER BY 1, 3, 2
LIMIT :limit
