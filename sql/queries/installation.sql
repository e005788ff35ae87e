-- name: deployment_set
-- Set a value of the installation (table deployment), or (NULL) delete it; with `keep`, only if it has none. Returns the value
-- that it has now.
WITH gone AS (DELETE FROM deployment WHERE key = :key AND :value::jsonb IS NULL)
INSERT INTO deployment AS d (key, value) SELECT :key, :value WHERE :value::jsonb IS NOT NULL
ON CONFLICT (key) DO UPDATE SET value = CASE WHEN :keep THEN d.value ELSE excluded.value END
RETURNING value

-- name: tenant_list
-- List all tenants.
SELECT tenant_id, slug FROM tenants ORDER BY slug

-- name: deployment_get
-- Get a value of the installation.
SELECT value FROM deployment WHERE key = :key
