-- name: users_ensure
-- What for: make people the first time they are seen. $1 tenant, $2 ids, $3 names, $4 now.
INSERT INTO users (tenant_id, id, name, created_at)
SELECT $1, id, name, $4 FROM unnest($2::uuid[], $3::text[]) AS new (id, name)
ORDER BY id
ON CONFLICT DO NOTHING

-- name: identities_ensure
-- What for: note under which names a platform knows them. $1 tenant, $2 platform, $3 workspace, $4 external ids, $5 user ids.
INSERT INTO identities (tenant_id, platform, workspace, external_id, user_id)
SELECT $1, $2, $3, external_id, user_id FROM unnest($4::text[], $5::uuid[]) AS new (external_id, user_id)
ORDER BY external_id
ON CONFLICT DO NOTHING

-- name: identities_find
-- What for: who the people are that a platform names. $1 tenant, $2 platform, $3 workspace, $4 external ids.
SELECT external_id, user_id FROM identities
WHERE tenant_id = $1 AND platform = $2 AND workspace = $3 AND external_id = ANY ($4::text[])

-- name: user_find
-- What for: one person. $1 tenant, $2 platform, $3 workspace, $4 external id.
SELECT u.id, u.name, u.admin
FROM identities AS i JOIN users AS u ON u.tenant_id = i.tenant_id AND u.id = i.user_id
WHERE i.tenant_id = $1 AND i.platform = $2 AND i.workspace = $3 AND i.external_id = $4

-- name: user_names
-- What for: the names of people by id. $1 tenant, $2 ids.
SELECT id, name FROM users WHERE tenant_id = $1 AND id = ANY ($2::uuid[])

-- name: user_set_admin
-- What for: make a person an admin of the tenant, or not. $1 tenant, $2 user, $3 admin.
UPDATE users SET admin = $3 WHERE tenant_id = $1 AND id = $2
