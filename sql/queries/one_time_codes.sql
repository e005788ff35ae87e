-- name: one_time_code_store
-- Store a code. With `replaces`, those that its person was given before for the same purpose end. `asked` is JSON text.
WITH earlier AS (
    DELETE FROM one_time_codes
    WHERE :replaces::boolean AND tenant_id = :tenant_id AND user_id IS NOT DISTINCT FROM :user_id AND purpose = :purpose
          AND digest <> :digest
)
INSERT INTO one_time_codes (tenant_id, digest, purpose, user_id, expires_at, key_id, asked)
VALUES (:tenant_id, :digest, :purpose, :user_id, :expires_at, :key_id, :asked)
ON CONFLICT (tenant_id, digest) DO UPDATE SET user_id = excluded.user_id, expires_at = excluded.expires_at

-- name: one_time_codes_end
-- End links and codes for some purposes: those of these users, or the one of a digest.
DELETE FROM one_time_codes
WHERE tenant_id = :tenant_id AND (user_id = ANY (:user_ids::uuid[]) OR digest = :digest) AND purpose = ANY (:purposes::text[])
RETURNING digest

-- name: one_time_code_find
-- Find the person of a code that has not expired; of an app's code, only if the app is `client` and still connected, with what
-- it may do. It stays as it is.
SELECT u.id, u.name, c.key_id, c.asked, k.permissions
FROM one_time_codes AS c JOIN users AS u ON u.tenant_id = c.tenant_id AND u.id = c.user_id
LEFT JOIN api_keys AS k ON k.tenant_id = c.tenant_id AND k.id = c.key_id
WHERE c.tenant_id = :tenant_id AND c.digest = :digest AND c.purpose = :purpose AND c.expires_at > :now
      AND (c.key_id IS NULL OR k.client = :client AND k.revoked_at IS NULL)

-- name: one_time_code_redeem
-- Find the person of a code as one_time_code_find does, and delete it. It works once.
WITH code AS MATERIALIZED (
{{one_time_code_find}}
), redeemed AS (
    DELETE FROM one_time_codes WHERE tenant_id = :tenant_id AND digest = :digest AND EXISTS (SELECT FROM code) RETURNING digest
)
SELECT code.* FROM code WHERE EXISTS (SELECT FROM redeemed)

-- name: invitations_open
-- List the invitations to the tenant that have not expired, the oldest first, or the one of a digest. One ends when whoever
-- made it is no admin any more.
SELECT c.digest, c.asked ->> 'name' AS name, u.id AS by, coalesce(u.name, '') AS by_name, c.expires_at,
       coalesce(c.asked ->> 'email', '') AS email
FROM one_time_codes AS c LEFT JOIN users AS u ON u.tenant_id = c.tenant_id AND u.id = c.user_id
WHERE c.tenant_id = :tenant_id AND c.purpose = 'invite' AND c.expires_at > :now AND (c.user_id IS NULL OR u.admin)
      AND (:digest::bytea IS NULL OR c.digest = :digest)
ORDER BY c.expires_at, c.digest
