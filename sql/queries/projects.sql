-- name: project_insert
-- What for: make a project; nothing when the name is taken. $1 tenant, $2 id, $3 slug, $4 isolated, $5 by whom, $6 now.
INSERT INTO projects (tenant_id, id, slug, isolated, created_by, created_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT DO NOTHING RETURNING id

-- name: project_find
-- What for: a project by name, with a person's role in it. $1 tenant, $2 slug, $3 user.
SELECT p.id, p.slug, p.isolated, m.role
FROM projects AS p
LEFT JOIN project_members AS m ON m.tenant_id = p.tenant_id AND m.project_id = p.id AND m.user_id = $3
WHERE p.tenant_id = $1 AND p.slug = $2

-- name: project_list
-- What for: the projects that a person is in, or all of them for an admin. $1 tenant, $2 user, $3 all.
SELECT p.id, p.slug, p.isolated, m.role,
       (SELECT count(*) FROM project_members AS c WHERE c.tenant_id = p.tenant_id AND c.project_id = p.id) AS members
FROM projects AS p
LEFT JOIN project_members AS m ON m.tenant_id = p.tenant_id AND m.project_id = p.id AND m.user_id = $2
WHERE p.tenant_id = $1 AND ($3 OR m.role IS NOT NULL)
ORDER BY p.slug

-- name: project_member_put
-- What for: give a person a role. $1 tenant, $2 project, $3 user, $4 role.
INSERT INTO project_members (tenant_id, project_id, user_id, role) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant_id, project_id, user_id) DO UPDATE SET role = excluded.role

-- name: project_member_remove
-- What for: take a person out. $1 tenant, $2 project, $3 user.
DELETE FROM project_members WHERE tenant_id = $1 AND project_id = $2 AND user_id = $3 RETURNING role

-- name: project_members
-- What for: who is in a project. $1 tenant, $2 project.
SELECT u.id, u.name, m.role FROM project_members AS m
JOIN users AS u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
WHERE m.tenant_id = $1 AND m.project_id = $2 ORDER BY u.name, u.id

-- name: project_rooms
-- What for: which rooms that a person may see are in a project. $1 tenant, $2 project, $3 user.
SELECT coalesce(c.title, c.name) AS name, c.private, c.pooled FROM conversations AS c
WHERE c.tenant_id = $1 AND c.project_id = $2 AND c.kind = 'room'
      AND (NOT c.private OR EXISTS (SELECT FROM members AS m WHERE m.tenant_id = $1 AND m.conversation_id = c.id
                                    AND m.user_id = $3 AND m.left_at IS NULL))
ORDER BY 1
