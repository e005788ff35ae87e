-- name: app_tokens_insert
-- Store the first tokens of a sign-in. Of the app's sign-ins, only the `kept` that were renewed last stay besides. The
-- app ends no earlier than they do.
WITH older AS (
    DELETE FROM app_tokens WHERE tenant_id = :tenant_id AND id IN (
        SELECT id FROM app_tokens WHERE tenant_id = :tenant_id AND key_id = :key_id
        ORDER BY refresh_expires_at DESC, id OFFSET :kept
    )
), app AS (
    UPDATE api_keys SET expires_at = greatest(expires_at, :refresh_expires_at) WHERE tenant_id = :tenant_id AND id = :key_id
)
INSERT INTO app_tokens (tenant_id, id, key_id, resource, permissions, access_digest, access_expires_at, family_digest,
                        refresh_digest, refresh_expires_at)
VALUES (:tenant_id, :id, :key_id, :resource, :permissions::text[], :access_digest, :access_expires_at, :family_digest,
        :refresh_digest, :refresh_expires_at)

-- name: app_access_find
-- Find what an access token stands for, also one that has ended, with what its person is now. It sets its tenant itself, as
-- api_key_find does.
SELECT found.*
FROM (SELECT set_config('nexus.tenant', :tenant_id::uuid::text, true) AS tenant OFFSET 0) AS within
CROSS JOIN LATERAL (
    SELECT k.id, t.access_digest AS digest, k.user_id, k.vendor, t.permissions,
           least(t.access_expires_at, k.expires_at) AS expires_at, k.revoked_at, k.last_used_at, t.resource, u.admin,
           u.opted_out
    FROM app_tokens AS t
         JOIN api_keys AS k ON k.tenant_id = t.tenant_id AND k.id = t.key_id
         JOIN users AS u ON u.tenant_id = k.tenant_id AND u.id = k.user_id
    WHERE t.tenant_id = within.tenant::uuid AND t.access_digest = :digest OFFSET 0
) AS found

-- name: app_sign_in_find
-- Find the sign-in of an app that a refresh token belongs to, by the part that all of the sign-in begin with, or an
-- access token.
SELECT t.id, t.refresh_digest AS digest, t.refresh_expires_at AS expires_at, k.revoked_at, k.permissions
FROM app_tokens AS t JOIN api_keys AS k ON k.tenant_id = t.tenant_id AND k.id = t.key_id
WHERE t.tenant_id = :tenant_id AND (t.family_digest = :family_digest OR t.access_digest = :access_digest) AND k.client = :client

-- name: app_tokens_renew
-- Replace both tokens of a sign-in, by its refresh token that is valid now. It works once. The app ends no earlier than they do.
WITH renewed AS (
    UPDATE app_tokens AS t
    SET permissions = :permissions::text[], access_digest = :access_digest, access_expires_at = :access_expires_at,
        refresh_digest = :refresh_digest, refresh_expires_at = :refresh_expires_at
    FROM api_keys AS k
    WHERE t.tenant_id = :tenant_id AND t.family_digest = :family_digest AND t.refresh_digest = :used_digest
          AND t.refresh_expires_at > :now
          AND k.tenant_id = t.tenant_id AND k.id = t.key_id AND k.client = :client AND k.revoked_at IS NULL
    RETURNING t.key_id
)
UPDATE api_keys AS k SET expires_at = greatest(k.expires_at, :refresh_expires_at) FROM renewed
WHERE k.tenant_id = :tenant_id AND k.id = renewed.key_id
RETURNING k.id

-- name: app_tokens_end
-- End a sign-in of an app, and say whether that was its last one.
WITH ended AS (
    DELETE FROM app_tokens AS t USING api_keys AS k
    WHERE t.tenant_id = :tenant_id AND t.id = :id AND k.tenant_id = t.tenant_id AND k.id = t.key_id AND k.client = :client
    RETURNING t.id, t.key_id, k.user_id
)
SELECT ended.key_id, ended.user_id,
       NOT EXISTS (SELECT FROM app_tokens AS o
                   WHERE o.tenant_id = :tenant_id AND o.key_id = ended.key_id AND o.id <> ended.id) AS last
FROM ended
