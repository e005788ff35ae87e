-- name: project_insert
-- Create a project.
INSERT INTO projects (tenant_id, id, slug, isolated, created_by, created_at) VALUES (:tenant_id, :id, :slug, :isolated,
    :user_id, :now)

-- name: projects_of_slug
-- List all projects of a name, whoever is in them: for admins of the tenant alone.
SELECT id FROM projects WHERE tenant_id = :tenant_id AND slug = :slug ORDER BY created_at, id

-- name: project_list
-- List the projects that a person is a member of by any of their users, with the best of their roles and how many
-- people are in each.
SELECT p.id, p.slug, p.isolated, own_role.role,
       (SELECT count(DISTINCT coalesce(u.person_id, u.id)) FROM project_members AS c
        JOIN users AS u ON u.tenant_id = c.tenant_id AND u.id = c.user_id
        WHERE c.tenant_id = p.tenant_id AND c.project_id = p.id) AS members
FROM projects AS p
JOIN (SELECT DISTINCT ON (m.project_id) m.project_id, m.role FROM project_members AS m
      JOIN users AS u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
      WHERE m.tenant_id = :tenant_id
            AND coalesce(u.person_id, u.id) IN (SELECT coalesce(person_id, id) FROM users WHERE tenant_id = :tenant_id
                AND id = ANY (:user_ids::uuid[]))
      ORDER BY m.project_id, array_position(ARRAY['admin', 'write', 'read'], m.role)) AS own_role ON own_role.project_id = p.id
WHERE p.tenant_id = :tenant_id
ORDER BY p.slug, p.id

-- name: project_admins
-- Count the people who are admins of a project, and say whether a person is one of them.
SELECT count(DISTINCT coalesce(u.person_id, u.id)) AS admins,
       coalesce(bool_or(coalesce(u.person_id, u.id) = p.person), false) AS is_one
FROM (SELECT coalesce(person_id, id) AS person FROM users WHERE tenant_id = :tenant_id AND id = :user_id) AS p
JOIN project_members AS m ON m.tenant_id = :tenant_id AND m.project_id = :project_id AND m.role = 'admin'
JOIN users AS u ON u.tenant_id = m.tenant_id AND u.id = m.user_id

-- name: project_member_set
-- Set a person's role in a project: of the user that is named, and of all their users that were named before. Returns
-- these; none where they are no member, unless they join (`joins`).
INSERT INTO project_members (tenant_id, project_id, user_id, role)
SELECT :tenant_id, :project_id, o.id, :role
FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id
     AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
WHERE u.tenant_id = :tenant_id AND u.id = :user_id
      AND (o.id = u.id AND (:joins OR EXISTS (
               SELECT FROM project_members AS m JOIN users AS s ON s.tenant_id = m.tenant_id AND s.id = m.user_id
               WHERE m.tenant_id = :tenant_id AND m.project_id = :project_id
                     AND coalesce(s.person_id, s.id) = coalesce(u.person_id, u.id)))
           OR EXISTS (SELECT FROM project_members AS m WHERE m.tenant_id = :tenant_id
                      AND m.project_id = :project_id AND m.user_id = o.id))
ORDER BY o.id
ON CONFLICT (tenant_id, project_id, user_id) DO UPDATE SET role = excluded.role
RETURNING user_id

-- name: project_members
-- List the people of a project: one of those of their users that were named, the names of these, and the best of their
-- roles.
SELECT (array_agg(u.id ORDER BY u.id))[1] AS id, array_agg(u.name ORDER BY u.name, u.id) AS names,
       (array_agg(m.role ORDER BY array_position(ARRAY['admin', 'write', 'read'], m.role)))[1] AS role
FROM project_members AS m
JOIN users AS u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
WHERE m.tenant_id = :tenant_id AND m.project_id = :project_id
GROUP BY coalesce(u.person_id, u.id)
ORDER BY 2, min(u.id::text)

-- name: project_member_find
-- Find members of a project by their ids on any platform, or by their names. One user for each person.
SELECT DISTINCT ON (coalesce(u.person_id, u.id)) u.id, u.name, u.admin
FROM project_members AS m
JOIN users AS u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
WHERE m.tenant_id = :tenant_id AND m.project_id = :project_id
      AND (lower(u.name) = ANY (:names::text[])
           OR EXISTS (SELECT FROM identities AS i WHERE i.tenant_id = :tenant_id AND i.user_id = u.id
                      AND i.external_id = ANY (:names::text[])))
ORDER BY coalesce(u.person_id, u.id), u.id

-- name: project_rooms
-- List a project's rooms, of the private ones only those that a person is in now (`joined_ids`).
SELECT c.id, coalesce(c.title, c.name) AS name, c.private, c.pooled FROM conversations AS c
WHERE c.tenant_id = :tenant_id AND c.project_id = :project_id AND c.kind = 'room'
      AND (NOT c.private OR c.id = ANY (:joined_ids::uuid[]))
ORDER BY 2

-- name: project_items
-- List what was written for a project: kinds, ids, whose it is, and whether it is in use now.
SELECT 'memory' AS kind, id, user_id,
       superseded_by IS NULL AND merged_into IS NULL AND trashed_at IS NULL AND (expires_at IS NULL OR expires_at > :now)
           AS current
FROM memories WHERE tenant_id = :tenant_id AND namespace = :namespace
UNION ALL
SELECT 'fact', id, user_id, valid_to IS NULL FROM facts WHERE tenant_id = :tenant_id AND namespace = :namespace
UNION ALL
SELECT 'landmark', id, user_id, state <> 'retired' FROM landmarks WHERE tenant_id = :tenant_id AND namespace = :namespace
UNION ALL
SELECT 'pending', id, user_id, state = 'pending' FROM quarantine WHERE tenant_id = :tenant_id AND namespace = :namespace
ORDER BY 1, 2
