-- name: backup_begin
-- Export this transaction's snapshot, so that pg_dump reads the same state, and get the version of the last applied migration.
SELECT pg_export_snapshot() AS snapshot, (SELECT max(version) FROM schema_migrations) AS schema

-- name: table_names
-- List tables and views, without those of extensions, each with whether it is under row-level security: none in an empty
-- database. Nexus has no views.
SELECT c.relname AS name, c.relrowsecurity AS row_security FROM pg_class AS c
WHERE c.relkind IN ('r', 'p', 'v', 'm') AND c.relnamespace = 'public'::regnamespace
      AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')
ORDER BY c.relname

-- name: restore_end
-- After a restore, raise every conversation's version, so that no cached view from before it matches, and end every
-- web session, every login link and every token of an app, of all tenants: who signed out since the backup stays so. What
-- webhooks were to be told then was told since.
WITH codes AS (DELETE FROM one_time_codes), tokens AS (DELETE FROM app_tokens),
     sessions AS (DELETE FROM web_sessions), told AS (DELETE FROM webhook_changes),
     messages AS (UPDATE webhooks SET told = pg_current_snapshot(), message_id = NULL, message_at = NULL, message_until = NULL)
UPDATE conversations SET version = version + 1000000000

-- name: constraints_and_indexes
-- List the foreign keys of our tables, each with its table, and the indexes that no constraint has made, with their
-- definitions. An extension's are left out.
SELECT conrelid::regclass::text AS owner, quote_ident(conname) AS name, pg_get_constraintdef(oid) AS definition
FROM pg_constraint WHERE contype = 'f' AND connamespace = 'public'::regnamespace
UNION ALL
SELECT NULL, i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
WHERE c.relnamespace = 'public'::regnamespace
      AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid)
      AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = c.oid AND d.deptype = 'e')
ORDER BY 1, 2
