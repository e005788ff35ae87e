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
-- What for: the tables to count. No parameters.
SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname

-- name: tables_count
-- What for: whether a database is empty. No parameters.
SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'p', 'v', 'm') AND relnamespace = 'public'::regnamespace

-- name: restored_versions
-- What for: cached views of before the restore are of no conversation that there is now. No parameters; for all tenants.
UPDATE conversations SET version = version + 1000000000

-- name: deployment_set
-- What for: what is true of the installation now. $1 key, $2 value.
INSERT INTO deployment (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value
