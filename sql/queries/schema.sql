-- name: schema_applied
-- List the applied migrations.
SELECT version, name, checksum FROM schema_migrations ORDER BY version

-- name: schema_record
-- Record an applied migration.
INSERT INTO schema_migrations (version, name, checksum) VALUES (:version, :name, :checksum)

-- name: schema_exists
-- Check whether the table of applied migrations exists.
SELECT to_regclass('schema_migrations')

-- name: server_version
-- Get the server's version, for doctor.
SHOW server_version

-- name: vector_version
-- Get the version of pgvector, as installed or else as available, for doctor.
SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector'

-- name: vector_schema
-- Get the schema of pgvector's types.
SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'

-- name: tenant_isolation
-- Check that row-level security binds the current role on every tenant table, for doctor.
SELECT current_user AS role,
       (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user) AS exempt,
       (SELECT count(*) FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'tenants'
              AND NOT (c.relrowsecurity AND c.relforcerowsecurity)) AS unprotected

-- name: tables_have_statistics
-- Check whether the planner has statistics of the largest tables, and they are not small.
SELECT min(reltuples) > 1000 FROM pg_class
WHERE oid = ANY ('{messages,episodes,recall_index,recall_terms}'::regclass[])
