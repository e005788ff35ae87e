-- name: login_link_store
-- Store a link that signs a person in. One that they were given before ends.
INSERT INTO login_links (tenant_id, user_id, digest, created_at, expires_at)
VALUES (:tenant_id, :user_id, :digest, :now, :expires_at)
ON CONFLICT (tenant_id, user_id) DO UPDATE
SET digest = excluded.digest, created_at = excluded.created_at, expires_at = excluded.expires_at

-- name: login_link_redeem
-- Delete a link that has not expired, and return its person. It works once.
DELETE FROM login_links WHERE tenant_id = :tenant_id AND digest = :digest AND expires_at > :now RETURNING user_id

-- name: login_link_person
-- Find the name of the person whom a link would sign in. It stays as it is.
SELECT u.name FROM login_links AS l JOIN users AS u ON u.tenant_id = l.tenant_id AND u.id = l.user_id
WHERE l.tenant_id = :tenant_id AND l.digest = :digest AND l.expires_at > :now

-- name: links_delete_of
-- Delete the login links of these users, and the codes by which others would be linked to them.
WITH codes AS (DELETE FROM link_codes WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]))
DELETE FROM login_links WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
