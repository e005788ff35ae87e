-- name: project_insert
-- Create a project; no row when the name is taken.
INSERT INTO projects (tenant_id, id, slug, isolated, created_by, created_at) VALUES (:tenant_id, :id, :slug, :isolated,
    :user_id, :now)
ON CONFLICT DO NOTHING RETURNING id

-- name: project_find
-- Find a project by name, with a person's role in it.
SELECT p.id, p.slug, p.isolated, m.role
FROM projects AS p
LEFT JOIN project_members AS m ON m.tenant_id = p.tenant_id AND m.project_id = p.id AND m.user_id = :user_id
WHERE p.tenant_id = :tenant_id AND p.slug = :slug

-- name: project_list
-- List the projects that a user is a member of.
SELECT p.id, p.slug, p.isolated, m.role,
       (SELECT count(*) FROM project_members AS c WHERE c.tenant_id = p.tenant_id AND c.project_id = p.id) AS members
FROM projects AS p
JOIN project_members AS m ON m.tenant_id = p.tenant_id AND m.project_id = p.id AND m.user_id = :user_id
WHERE p.tenant_id = :tenant_id
ORDER BY p.slug

-- name: project_member_set
-- Set a person's role in a project.
INSERT INTO project_members (tenant_id, project_id, user_id, role) VALUES (:tenant_id, :project_id, :user_id, :role)
ON CONFLICT (tenant_id, project_id, user_id) DO UPDATE SET role = excluded.role

-- name: project_member_remove
-- Remove a person from a project.
DELETE FROM project_members WHERE tenant_id = :tenant_id AND project_id = :project_id AND user_id = :user_id
    RETURNING role

-- name: project_members
-- List the members of a project.
SELECT u.id, u.name, m.role FROM project_members AS m
JOIN users AS u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
WHERE m.tenant_id = :tenant_id AND m.project_id = :project_id ORDER BY u.name, u.id

-- name: project_rooms
-- List a project's rooms, of the private ones only those that a person is in.
SELECT coalesce(c.title, c.name) AS name, c.private, c.pooled FROM conversations AS c
WHERE c.tenant_id = :tenant_id AND c.project_id = :project_id AND c.kind = 'room'
      AND (NOT c.private OR EXISTS (SELECT FROM members AS m WHERE m.tenant_id = :tenant_id AND m.conversation_id = c.id
                                    AND m.user_id = :user_id AND m.left_at IS NULL))
ORDER BY 1
