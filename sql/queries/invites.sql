-- name: invite_put
-- Invite a user to a team, or to a project in a role; an earlier invitation of theirs is replaced. It is `raised` where that
-- offered less, and is open or was until lately (`forgotten_at`).
INSERT INTO invites (tenant_id, id, team_id, user_id, created_by, created_at, expires_at, project_id, role)
VALUES (:tenant_id, :id, :team_id, :user_id, :created_by, :now, :expires_at, :project_id, :role)
ON CONFLICT (tenant_id, team_id, project_id, user_id) DO UPDATE
SET id = excluded.id, created_by = excluded.created_by, created_at = excluded.created_at,
    expires_at = excluded.expires_at, role = excluded.role, declined = false,
    raised = invites.expires_at > :forgotten_at AND coalesce(
        invites.raised OR array_position(ARRAY['read', 'write', 'admin'], excluded.role)
                          > array_position(ARRAY['read', 'write', 'admin'], invites.role), false)

-- name: invites_end
-- End the open invitations of a person to a team or project (`place_id`), which stay known for a while: they are withdrawn,
-- or `declined`. Returns the users that were invited.
UPDATE invites SET expires_at = :now, declined = declined OR :declined
WHERE tenant_id = :tenant_id AND coalesce(team_id, project_id) = :place_id AND user_id = ANY (:user_ids::uuid[])
      AND expires_at > :now
RETURNING user_id

-- name: invites_declined
-- Check whether a person has declined an invitation to a team or project since a time.
SELECT EXISTS (SELECT FROM invites
               WHERE tenant_id = :tenant_id AND coalesce(team_id, project_id) = :place_id
                     AND user_id = ANY (:user_ids::uuid[]) AND declined AND expires_at > :since) AS declined

-- name: invites_take
-- Delete the invitations of a person to a team or project (`place_id`), which they accept, or an open one that is
-- revoked, by its id. Returns the users that were invited, in which role, and whether that was raised.
DELETE FROM invites
WHERE tenant_id = :tenant_id AND coalesce(team_id, project_id) = :place_id
      AND (user_id = ANY (:user_ids::uuid[]) OR id = :id::uuid AND expires_at > :now)
RETURNING user_id, role, raised, expires_at > :now AS open

-- name: invites_list
-- List the open invitations to a team or project (`place_id`), or of a person to any, or by a person (`by_ids`), oldest
-- first, each with who is invited and who invited them.
SELECT i.id, i.team_id AS team, i.project_id AS project, coalesce(t.name, p.slug) AS place,
       coalesce(p.isolated, false) AS isolated, i.role, i.user_id AS "user",
       u.name, coalesce(b.name, '') AS by, b.id AS by_id, i.created_at, i.expires_at
FROM invites AS i
LEFT JOIN teams AS t ON t.tenant_id = i.tenant_id AND t.id = i.team_id
LEFT JOIN projects AS p ON p.tenant_id = i.tenant_id AND p.id = i.project_id
JOIN users AS u ON u.tenant_id = i.tenant_id AND u.id = i.user_id
LEFT JOIN users AS b ON b.tenant_id = i.tenant_id AND b.id = i.created_by
WHERE i.tenant_id = :tenant_id AND (coalesce(i.team_id, i.project_id) = :place_id OR i.user_id = ANY (:user_ids::uuid[])
           OR i.created_by = ANY (:by_ids::uuid[]))
      AND i.expires_at > :now
ORDER BY i.created_at, i.id
