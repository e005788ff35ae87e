-- name: backup_snapshot
-- What for: let pg_dump see what this transaction sees. No parameters.
SELECT pg_export_snapshot()

-- name: schema_version
-- What for: the last migration that was applied. No parameters.
SELECT max(version) FROM schema_migrations

-- name: sees_all_tenants
-- What for: whether the current role is above row-level security. No parameters.
SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user

-- name: table_names
-- What for: the tables to count; an extension's are not ours. No parameters.
SELECT c.relname AS name FROM pg_class AS c
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
      AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')
ORDER BY c.relname

-- name: tables_count
-- What for: whether a database is empty; what an extension has made is nobody's. No parameters.
SELECT count(*) FROM pg_class AS c
WHERE c.relkind IN ('r', 'p', 'v', 'm') AND c.relnamespace = 'public'::regnamespace
      AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')

-- name: restored_versions
-- What for: cached views of before the restore are of no conversation that there is now. No parameters; for all tenants.
UPDATE conversations SET version = version + 1000000000

-- name: deployment_set
-- What for: what is true of the installation now. $1 key, $2 value.
INSERT INTO deployment (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value
