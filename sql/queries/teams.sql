-- name: team_insert
-- Create a team. Others may have the same name.
INSERT INTO teams (tenant_id, id, name, created_by, created_at) VALUES (:tenant_id, :id, :name, :user_id, :now)
ON CONFLICT DO NOTHING RETURNING id

-- name: team_facts
-- Get every fact that acts on a team are judged by, as of now: its name, the best role that any user of the asker has in it,
-- whether they are its only admin, whether they are invited, and the same of the other person `other_id`, if any, who may be
-- the same. No row for an unknown team.
WITH people AS MATERIALIZED (
    SELECT u.id AS named, o.id FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id
         AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
    WHERE u.tenant_id = :tenant_id AND u.id IN (:user_id, :other_id)
), admins AS MATERIALIZED (
    SELECT user_id FROM team_members WHERE tenant_id = :tenant_id AND team_id = :team_id AND role = 'admin'
)
SELECT t.name,
       (SELECT m.role FROM team_members AS m JOIN people AS p ON p.named = :user_id AND p.id = m.user_id
        WHERE m.tenant_id = :tenant_id AND m.team_id = t.id
        ORDER BY m.role LIMIT 1) AS role,
       EXISTS (SELECT FROM invites AS i JOIN people AS p ON p.named = :user_id AND p.id = i.user_id
               WHERE i.tenant_id = :tenant_id AND i.team_id = t.id AND i.expires_at > :now) AS invited,
       (SELECT m.role FROM team_members AS m JOIN people AS p ON p.named = :other_id AND p.id = m.user_id
        WHERE m.tenant_id = :tenant_id AND m.team_id = t.id
        ORDER BY m.role LIMIT 1) AS other_role,
       EXISTS (SELECT FROM people WHERE named = :user_id AND id = :other_id) AS of_self,
       EXISTS (SELECT FROM admins) AND NOT EXISTS (
           SELECT FROM admins WHERE user_id NOT IN (SELECT id FROM people WHERE named = coalesce(:other_id, :user_id))
       ) AS last_admin
FROM teams AS t WHERE t.tenant_id = :tenant_id AND t.id = :team_id

-- name: team_list
-- List the teams that a person is in by any of their users, with the best of their roles and how many people are in each.
SELECT t.id, t.name, own_role.role, t.created_at,
       (SELECT count(DISTINCT coalesce(u.person_id, u.id)) FROM team_members AS c
        JOIN users AS u ON u.tenant_id = c.tenant_id AND u.id = c.user_id
        WHERE c.tenant_id = t.tenant_id AND c.team_id = t.id) AS members
FROM teams AS t
JOIN (SELECT DISTINCT ON (m.team_id) m.team_id, m.role FROM team_members AS m
      WHERE m.tenant_id = :tenant_id AND m.user_id = ANY (:user_ids::uuid[])
      ORDER BY m.team_id, m.role) AS own_role ON own_role.team_id = t.id
WHERE t.tenant_id = :tenant_id
ORDER BY t.name, t.id

-- name: team_members_list
-- List the people of a team: one of the users of each that were made members, the names of these, the best of their roles,
-- and since when.
SELECT (array_agg(u.id ORDER BY m.joined_at, u.id))[1] AS id, array_agg(u.name ORDER BY u.name, u.id) AS names,
       min(m.role) AS role, min(m.joined_at) AS joined_at
FROM team_members AS m
JOIN users AS u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
WHERE m.tenant_id = :tenant_id AND m.team_id = :team_id
GROUP BY coalesce(u.person_id, u.id)
ORDER BY 2, 1

-- name: team_member_add
-- Make a user a member of a team, with the role that the person has there already, if any.
INSERT INTO team_members (tenant_id, team_id, user_id, role, joined_at)
VALUES (:tenant_id, :team_id, :user_id, :role, :now)
ON CONFLICT DO NOTHING RETURNING user_id

-- name: team_member_set
-- Set a person's role in a team, with all their users that are members.
UPDATE team_members AS m SET role = :role FROM users AS u, users AS o
WHERE m.tenant_id = :tenant_id AND m.team_id = :team_id AND m.user_id = o.id
      AND o.tenant_id = :tenant_id AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
      AND u.tenant_id = :tenant_id AND u.id = :user_id
RETURNING m.user_id

-- name: place_rename
-- Give a team or a project (`place_id`) another name. Others may have it too.
WITH team AS (UPDATE teams SET name = :name WHERE tenant_id = :tenant_id AND id = :place_id)
UPDATE projects SET slug = :name WHERE tenant_id = :tenant_id AND id = :place_id

-- name: place_member_remove
-- Remove a person from a team or a project (`place_id`), with all their users.
WITH person AS MATERIALIZED (
    SELECT o.id FROM users AS u JOIN users AS o ON o.tenant_id = u.tenant_id
         AND coalesce(o.person_id, o.id) = coalesce(u.person_id, u.id)
    WHERE u.tenant_id = :tenant_id AND u.id = :user_id
), of_team AS (
    DELETE FROM team_members
    WHERE tenant_id = :tenant_id AND team_id = :place_id AND user_id IN (SELECT id FROM person) RETURNING user_id
), of_project AS (
    DELETE FROM project_members
    WHERE tenant_id = :tenant_id AND project_id = :place_id AND user_id IN (SELECT id FROM person) RETURNING user_id
)
SELECT user_id FROM of_team UNION ALL SELECT user_id FROM of_project

-- name: place_delete
-- Delete a team or a project (`place_id`) that nothing is filed under, with its invitations, and that no conversation is in.
-- Returns who was in it.
WITH of_team AS (
    DELETE FROM team_members WHERE tenant_id = :tenant_id AND team_id = :place_id RETURNING user_id
), of_project AS (
    DELETE FROM project_members WHERE tenant_id = :tenant_id AND project_id = :place_id RETURNING user_id
), team AS (
    DELETE FROM teams WHERE tenant_id = :tenant_id AND id = :place_id
), project AS (
    DELETE FROM projects WHERE tenant_id = :tenant_id AND id = :place_id
)
SELECT user_id FROM of_team UNION ALL SELECT user_id FROM of_project ORDER BY user_id
