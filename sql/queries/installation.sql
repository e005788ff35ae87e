-- name: deployment_set
-- Set a value of the installation (table deployment).
INSERT INTO deployment (key, value) VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value

-- name: deployment_delete
-- Delete a value of the installation.
DELETE FROM deployment WHERE key = :key

-- name: tenant_list
-- List all tenants.
SELECT tenant_id, slug FROM tenants ORDER BY slug

-- name: deployment_get
-- Get a value of the installation.
SELECT value FROM deployment WHERE key = :key

-- name: deployment_insert
-- Set a value of the installation unless it has one.
INSERT INTO deployment (key, value) VALUES (:key, :value) ON CONFLICT DO NOTHING
