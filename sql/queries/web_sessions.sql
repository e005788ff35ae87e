-- name: web_session_insert
-- Store a new web session.
INSERT INTO web_sessions (tenant_id, id, user_id, digest, created_at, expires_at, browser)
VALUES (:tenant_id, :id, :user_id, :digest, :now, :expires_at, :browser)

-- name: web_session_find
-- Find a web session by its digest, expired ones too, with what its person is now. It sets its tenant itself, as
-- api_key_find does.
SELECT found.*
FROM (SELECT set_config('nexus.tenant', :tenant_id::uuid::text, true) AS tenant OFFSET 0) AS within
CROSS JOIN LATERAL (
    SELECT w.id, w.digest, w.user_id, w.expires_at, w.last_used_at, u.admin, u.opted_out
    FROM web_sessions AS w JOIN users AS u ON u.tenant_id = w.tenant_id AND u.id = w.user_id
    WHERE w.tenant_id = within.tenant::uuid AND w.digest = :digest OFFSET 0
) AS found

-- name: web_sessions_list
-- List the web sessions that have not expired: those of these users, oldest first; or (NULL) those of everyone, by the names
-- of their people.
SELECT w.id, w.user_id, w.created_at, w.expires_at, w.last_used_at, w.browser,
       CASE WHEN :user_ids::uuid[] IS NULL THEN u.name ELSE '' END AS user_name
FROM web_sessions AS w JOIN users AS u ON u.tenant_id = w.tenant_id AND u.id = w.user_id
WHERE w.tenant_id = :tenant_id AND w.expires_at > :now AND (:user_ids::uuid[] IS NULL OR w.user_id = ANY (:user_ids))
ORDER BY 7, w.created_at, w.id

-- name: web_sessions_end
-- End web sessions, and all those of some users.
DELETE FROM web_sessions
WHERE tenant_id = :tenant_id AND (id = ANY (:ids::uuid[]) OR user_id = ANY (:user_ids::uuid[])) RETURNING user_id
