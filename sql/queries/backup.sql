-- name: backup_begin
-- Export this transaction's snapshot, so that pg_dump reads the same state, and get the version of the last applied migration.
SELECT pg_export_snapshot() AS snapshot, (SELECT max(version) FROM schema_migrations) AS schema

-- name: role_bypasses_row_security
-- Check whether the current role bypasses row-level security.
SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user

-- name: table_names
-- List tables and views, without those of extensions: none in an empty database. Nexus has no views.
SELECT c.relname AS name FROM pg_class AS c
WHERE c.relkind IN ('r', 'p', 'v', 'm') AND c.relnamespace = 'public'::regnamespace
      AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')
ORDER BY c.relname

-- name: invalidate_cached_views
-- Raise every conversation's version after a restore, in all tenants, so that no cached view from before it matches.
UPDATE conversations SET version = version + 1000000000

-- name: indexes
-- List the indexes of our tables that no constraint has made, with their definitions. An extension's are left out.
SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
WHERE c.relnamespace = 'public'::regnamespace
      AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid)
      AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')
ORDER BY 1

-- name: foreign_keys
-- List the foreign keys of our tables, with their definitions.
SELECT conrelid::regclass::text AS owner, quote_ident(conname) AS name, pg_get_constraintdef(oid) AS definition
FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace ORDER BY conrelid::regclass::text, conname

-- name: tables_with_row_security
-- List the tables under row-level security.
SELECT relname AS name FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relrowsecurity ORDER BY relname
