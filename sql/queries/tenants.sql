-- name: tenant_ensure
-- Create a tenant and its agents if they do not exist; find the people that the workspace knows; and lock
-- conversations as conversations_lock does, unless one of the senders is not known: people are created before any
-- conversation is locked. In one statement, since every message passes here. Nothing else that exists is locked.
WITH tenant AS (
    INSERT INTO tenants (tenant_id, slug, created_at) VALUES (:tenant_id, :slug, :now) ON CONFLICT DO NOTHING
), agent AS (
    INSERT INTO agents (tenant_id, id, slug, name)
    SELECT :tenant_id, * FROM unnest(:agent_ids::uuid[], :agent_slugs::text[], :agent_names::text[])
    ON CONFLICT DO NOTHING
)
SELECT ARRAY(SELECT (i.external_id, i.user_id, u.opted_out, u.name, i.trust, i.trust_stated_at)
             FROM identities AS i JOIN users AS u ON u.tenant_id = i.tenant_id AND u.id = i.user_id
             WHERE i.tenant_id = :tenant_id AND i.platform = :platform AND i.workspace = :workspace
                   AND i.external_id = ANY (:external_ids::text[])) AS people,
       ARRAY(SELECT locked FROM (
{{conversations_lock}}
       ) AS locked
             WHERE NOT EXISTS (
                 SELECT FROM unnest(:sender_ids::text[]) AS sender (external_id)
                 WHERE NOT EXISTS (SELECT FROM identities AS i
                                   WHERE i.tenant_id = :tenant_id AND i.platform = :platform
                                         AND i.workspace = :workspace AND i.external_id = sender.external_id))
       ) AS conversations

-- name: setting_set
-- Set a tenant's setting, or (NULL) delete it, so that the configured value applies again, and say so to every process.
WITH reset AS (
    DELETE FROM settings WHERE tenant_id = :tenant_id AND key = :key AND :value::jsonb IS NULL
), changed AS (
    INSERT INTO settings (tenant_id, key, value, updated_at)
    SELECT :tenant_id, :key, :value, :now WHERE :value::jsonb IS NOT NULL
    ON CONFLICT (tenant_id, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
)
SELECT pg_notify('turns', 'settings ' || :tenant_id::text)

-- name: settings_all
-- List all settings that a tenant's admins have set.
SELECT key, value, updated_at FROM settings WHERE tenant_id = :tenant_id ORDER BY key

-- name: workspaces_all
-- List the tenant's workspaces: those of its people and conversations.
SELECT platform, workspace FROM identities WHERE tenant_id = :tenant_id
UNION SELECT platform, workspace FROM conversations WHERE tenant_id = :tenant_id
ORDER BY platform, workspace
