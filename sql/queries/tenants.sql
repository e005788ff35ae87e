-- name: tenant_ensure
-- What for: make a tenant, its workspace and its agents the first time they are named, and find whom the workspace knows
-- already. One statement, and no lock on rows that are there: every message passes here. $1 tenant, $2 slug, $3 platform,
-- $4 workspace, $5 agent ids, $6 slugs, $7 names, $8 now, $9 the platform's ids of people.
WITH tenant AS (
    INSERT INTO tenants (tenant_id, slug, created_at) VALUES ($1, $2, $8) ON CONFLICT DO NOTHING
), workspace AS (
    INSERT INTO workspaces (tenant_id, platform, workspace, created_at) VALUES ($1, $3, $4, $8) ON CONFLICT DO NOTHING
), agent AS (
    INSERT INTO agents (tenant_id, id, slug, name)
    SELECT $1, * FROM unnest($5::uuid[], $6::text[], $7::text[])
    ON CONFLICT DO NOTHING
)
SELECT i.external_id, i.user_id, u.opted_out
FROM identities AS i JOIN users AS u ON u.tenant_id = i.tenant_id AND u.id = i.user_id
WHERE i.tenant_id = $1 AND i.platform = $3 AND i.workspace = $4 AND i.external_id = ANY ($9::text[])

-- name: tenant_list
-- What for: whose work may be due. No parameters.
SELECT tenant_id, slug FROM tenants ORDER BY slug

-- name: deployment_get
-- What for: what is true of the whole installation. $1 key.
SELECT value FROM deployment WHERE key = $1

-- name: deployment_put
-- What for: note it once; a second writer keeps the first one's. $1 key, $2 value.
INSERT INTO deployment (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING

-- name: setting_put
-- What for: change a tenant's setting. $1 tenant, $2 key, $3 value, $4 now.
INSERT INTO settings (tenant_id, key, value, updated_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant_id, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at

-- name: settings_all
-- What for: all that a tenant's admins have set. $1 tenant.
SELECT key, value FROM settings WHERE tenant_id = $1 ORDER BY key

-- name: setting_delete
-- What for: what is configured holds again. $1 tenant, $2 key.
DELETE FROM settings WHERE tenant_id = $1 AND key = $2
