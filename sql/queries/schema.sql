-- name: schema_applied
-- What for: which migrations this database has. No parameters.
SELECT version, name, checksum FROM schema_migrations ORDER BY version

-- name: schema_record
-- What for: note an applied migration. $1 version, $2 name, $3 checksum.
INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)

-- name: schema_exists
-- What for: whether any migration was ever applied here. No parameters.
SELECT to_regclass('schema_migrations')

-- name: server_version
-- What for: doctor. No parameters.
SHOW server_version

-- name: vector_version
-- What for: doctor; pgvector as installed, else as available. No parameters.
SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector'

-- name: vector_schema
-- What for: where pgvector's types are. No parameters.
SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'

-- name: separation
-- What for: doctor; whether the current role is bound by row-level security on every table of a tenant. No parameters.
SELECT current_user AS role,
       (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user) AS exempt,
       (SELECT count(*) FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'tenants'
              AND NOT (c.relrowsecurity AND c.relforcerowsecurity)) AS unprotected

-- name: schema_measured
-- What for: whether the planner knows how large the largest tables are, and they are not small. No parameters.
SELECT min(reltuples) > 1000 FROM pg_class
WHERE oid = ANY ('{messages,episodes,recall_index,recall_terms}'::regclass[])
