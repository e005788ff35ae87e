-- name: deployment_set
-- Set a value of the installation (table deployment); with `keep`, only if it has none. Returns the value that it has now.
INSERT INTO deployment AS d (key, value) VALUES (:key, :value)
ON CONFLICT (key) DO UPDATE SET value = CASE WHEN :keep THEN d.value ELSE excluded.value END
RETURNING value

-- name: deployment_delete
-- Delete a value of the installation.
DELETE FROM deployment WHERE key = :key

-- name: tenant_list
-- List all tenants.
SELECT tenant_id, slug FROM tenants ORDER BY slug

-- name: deployment_get
-- Get a value of the installation.
SELECT value FROM deployment WHERE key = :key
