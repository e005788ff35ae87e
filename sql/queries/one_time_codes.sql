-- name: one_time_code_store
-- Store a code. With `replaces`, those that its person was given before for the same purpose end.
WITH earlier AS (
    DELETE FROM one_time_codes
    WHERE :replaces::boolean AND tenant_id = :tenant_id AND user_id = :user_id AND purpose = :purpose AND digest <> :digest
)
INSERT INTO one_time_codes (tenant_id, digest, purpose, user_id, expires_at)
VALUES (:tenant_id, :digest, :purpose, :user_id, :expires_at)
ON CONFLICT (tenant_id, digest) DO UPDATE SET user_id = excluded.user_id, expires_at = excluded.expires_at

-- name: one_time_code_find
-- Find the person of a code that has not expired. It stays as it is.
SELECT u.id, u.name FROM one_time_codes AS c JOIN users AS u ON u.tenant_id = c.tenant_id AND u.id = c.user_id
WHERE c.tenant_id = :tenant_id AND c.digest = :digest AND c.purpose = :purpose AND c.expires_at > :now

-- name: one_time_code_redeem
-- Delete a code that has not expired, and return its person. It works once.
DELETE FROM one_time_codes
WHERE tenant_id = :tenant_id AND digest = :digest AND purpose = :purpose AND expires_at > :now RETURNING user_id
