-- name: schema_applied
-- List the applied migrations.
SELECT version, name, checksum FROM schema_migrations ORDER BY version

-- name: schema_record
-- Record an applied migration.
INSERT INTO schema_migrations (version, name, checksum) VALUES (:version, :name, :checksum)

-- name: schema_exists
-- Check whether the table of applied migrations exists.
SELECT to_regclass('schema_migrations')

-- name: versions
-- Get the versions of the server and of pgvector, as installed or else as available, for doctor.
SELECT current_setting('server_version') AS server,
       (SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector') AS vector

-- name: login_rights
-- Check whether this login may migrate the database (a superuser, the owner of its tables, or of a database without any), and
-- whether it bypasses row-level security.
SELECT r.rolsuper OR coalesce(pg_has_role(session_user, c.relowner, 'MEMBER'), has_schema_privilege('public', 'CREATE')) AS owner,
       (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user) AS reads_all
FROM pg_roles AS r LEFT JOIN pg_class AS c ON c.oid = to_regclass('schema_migrations')
WHERE r.rolname = session_user

-- name: session_check
-- Check whether row-level security can be escaped by this session and whether it finds the tables, and get the schema
-- of pgvector's types.
SELECT n.nspname AS schema, c.oid IS NULL AS hidden,
       r.rolsuper OR r.rolbypassrls OR coalesce(pg_has_role(session_user, c.relowner, 'MEMBER'), true) AS exempt
FROM pg_roles AS r
LEFT JOIN pg_class AS c ON c.oid = to_regclass('schema_migrations')
CROSS JOIN pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
WHERE r.rolname = session_user AND e.extname = 'vector'

-- name: tenant_isolation
-- Check that row-level security binds the current login on every tenant table, for doctor.
SELECT session_user AS role,
       (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = session_user)
       OR EXISTS (SELECT FROM pg_roles WHERE (rolsuper OR rolbypassrls) AND pg_has_role(session_user, oid, 'MEMBER'))
       AS exempt,
       (SELECT count(*) FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
        WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND c.relname <> 'tenants'
              AND NOT (c.relrowsecurity AND c.relforcerowsecurity)) AS unprotected

-- name: tables_have_statistics
-- Check whether the planner knows the sizes of the largest tables, so that plans may be kept. A plan that was made for 64
-- rows reads 8,000 as fast as one that was made for them; one for no rows takes ten times as long. Only a table that has
-- rows can be slow: where people store entries alone, there is never a message.
SELECT bool_and(reltuples >= CASE WHEN oid = 'recall_index'::regclass THEN 32 ELSE 1 END
                OR oid <> 'recall_index'::regclass AND pg_relation_size(oid) = 0)
FROM pg_class WHERE oid = ANY ('{messages,episodes,recall_index,recall_terms}'::regclass[])

-- name: table_analyze_grown
-- Take the planner's statistics of the table that has grown most since the last time; get its name, or NULL.
SELECT analyze_grown_table(:passed::text[])
