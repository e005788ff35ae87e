-- name: openid_login_connect
-- Connect a login to a person. One that is connected to them already gets its new name; one of another person stays as
-- it is, and then no row is returned.
INSERT INTO openid_logins (tenant_id, id, user_id, digest, issuer, name, created_at)
VALUES (:tenant_id, :id, :user_id, :digest, :issuer, :name, :now)
ON CONFLICT (tenant_id, digest) DO UPDATE SET name = excluded.name WHERE openid_logins.user_id = excluded.user_id
RETURNING id

-- name: openid_login_used
-- Record that a login signs its person in, and return them.
UPDATE openid_logins SET last_used_at = :now WHERE tenant_id = :tenant_id AND digest = :digest RETURNING id, user_id

-- name: openid_logins_list
-- List the logins of these users, oldest first; or (NULL) those of everyone, by the names of their people.
SELECT o.id, o.user_id, o.issuer, o.name, o.created_at, o.last_used_at,
       CASE WHEN :user_ids::uuid[] IS NULL THEN u.name ELSE '' END AS user_name
FROM openid_logins AS o JOIN users AS u ON u.tenant_id = o.tenant_id AND u.id = o.user_id
WHERE o.tenant_id = :tenant_id AND (:user_ids::uuid[] IS NULL OR o.user_id = ANY (:user_ids))
ORDER BY 7, o.created_at, o.id

-- name: openid_logins_disconnect
-- Disconnect logins, and all those of some users: they sign nobody in any more.
DELETE FROM openid_logins
WHERE tenant_id = :tenant_id AND (id = ANY (:ids::uuid[]) OR user_id = ANY (:user_ids::uuid[])) RETURNING user_id
