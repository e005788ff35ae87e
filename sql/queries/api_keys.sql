-- name: api_key_insert
-- Store a new key, or an app that a person has connected: a key without a text.
INSERT INTO api_keys (tenant_id, id, user_id, vendor, name, prefix, digest, permissions, created_at, created_by, expires_at,
                      client, redirect_uri)
VALUES (:tenant_id, :id, :user_id, :vendor, :name, :prefix, :digest, :permissions::text[], :now, :created_by, :expires_at,
        :client, :redirect_uri)

-- name: api_key_find
-- Find a key by its digest, revoked and expired ones too, with what its person is now. It sets its tenant itself, so it
-- needs no transaction around it. What is within LATERAL depends on that, and so is read after it.
SELECT found.*
FROM (SELECT set_config('nexus.tenant', :tenant_id::uuid::text, true) AS tenant OFFSET 0) AS within
CROSS JOIN LATERAL (
    SELECT k.id, k.digest, k.user_id, k.vendor, k.permissions, k.expires_at, k.revoked_at, k.last_used_at, u.admin,
           u.opted_out
    FROM api_keys AS k JOIN users AS u ON u.tenant_id = k.tenant_id AND u.id = k.user_id
    WHERE k.tenant_id = within.tenant::uuid AND k.digest = :digest OFFSET 0
) AS found

-- name: api_keys_list
-- List the keys of these users, oldest first; or (NULL) those of everyone, by the names of their people.
SELECT k.id, k.user_id, k.vendor, k.name, k.prefix, k.permissions, k.created_at, k.expires_at, k.revoked_at, k.last_used_at,
       CASE WHEN :user_ids::uuid[] IS NULL THEN u.name ELSE '' END AS user_name, k.client, k.redirect_uri
FROM api_keys AS k JOIN users AS u ON u.tenant_id = k.tenant_id AND u.id = k.user_id
WHERE k.tenant_id = :tenant_id AND (:user_ids::uuid[] IS NULL OR k.user_id = ANY (:user_ids))
ORDER BY 11, k.created_at, k.id

-- name: api_keys_of_tools
-- Whether a tool has a key that is neither revoked nor expired.
SELECT EXISTS (SELECT FROM api_keys WHERE tenant_id = :tenant_id AND vendor IS NOT NULL AND revoked_at IS NULL
                                          AND (expires_at IS NULL OR expires_at > :now))

-- name: api_keys_revoke
-- Revoke keys that are not revoked yet.
UPDATE api_keys SET revoked_at = :now
WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) AND revoked_at IS NULL
RETURNING user_id

-- name: credential_is_valid
-- Whether a key or a web session has neither ended nor expired.
SELECT EXISTS (SELECT FROM api_keys WHERE tenant_id = :tenant_id AND id = :id AND revoked_at IS NULL
                                          AND (expires_at IS NULL OR expires_at > :now))
       OR EXISTS (SELECT FROM web_sessions WHERE tenant_id = :tenant_id AND id = :id AND expires_at > :now)

-- name: credential_used
-- Record when a key or a web session was used, at most once in the time since `before`.
WITH session AS (
    UPDATE web_sessions SET last_used_at = :now
    WHERE tenant_id = :tenant_id AND id = :id AND (last_used_at IS NULL OR last_used_at <= :before)
)
UPDATE api_keys SET last_used_at = :now
WHERE tenant_id = :tenant_id AND id = :id AND (last_used_at IS NULL OR last_used_at <= :before)

-- name: api_keys_delete_of
-- Delete all keys of these users, and the unused codes by which they would sign in or link an account.
WITH code AS (DELETE FROM one_time_codes WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]))
DELETE FROM api_keys WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) RETURNING id
