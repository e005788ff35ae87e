-- name: memories_expired
-- List expired memories that people or tools wrote. Extracted ones are only hidden from recall: they remain as history,
-- and what they superseded must not become current again.
SELECT id FROM memories WHERE tenant_id = :tenant_id AND expires_at <= :now AND origin <> 'extracted'
ORDER BY expires_at, id LIMIT :limit

-- name: memories_in_trash
-- List memories that were put into the trash before a time.
SELECT id FROM memories WHERE tenant_id = :tenant_id AND trashed_at <= :before ORDER BY trashed_at, id LIMIT :limit

-- name: messages_before
-- List messages from before a time, for retention.
SELECT id FROM messages WHERE tenant_id = :tenant_id AND at < :before ORDER BY at, id LIMIT :limit

-- name: link_codes_delete_expired
-- Delete expired link codes.
DELETE FROM link_codes WHERE tenant_id = :tenant_id AND expires_at <= :now

-- name: commands_delete_before
-- Delete old commands, whose events no platform sends again.
DELETE FROM commands WHERE tenant_id = :tenant_id AND received_at < :before

-- name: prompts_expire
-- Empty the stored prompts of answers from before a time.
UPDATE turns SET prompt = NULL, prompt_expired = true
WHERE tenant_id = :tenant_id AND id IN (
    SELECT id FROM turns WHERE tenant_id = :tenant_id AND prompt IS NOT NULL AND answered_at < :before
    ORDER BY answered_at LIMIT :limit
)
RETURNING id

-- name: columns_with_ids
-- List the columns of tenants' tables that may hold an id: as a value, in a list or within a text.
SELECT c.relname AS "table", a.attname AS "column", format_type(a.atttypid, NULL) AS "type"
FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attname <> 'tenant_id'
      AND format_type(a.atttypid, NULL) IN ('uuid', 'uuid[]', 'text', 'text[]', 'jsonb')
      AND EXISTS (SELECT FROM pg_attribute AS t WHERE t.attrelid = c.oid AND t.attname = 'tenant_id')
ORDER BY c.relname, a.attname
