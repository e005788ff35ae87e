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

-- name: web_sessions_of
-- List the web sessions of these users that have not expired, oldest first.
SELECT id, user_id, created_at, expires_at, last_used_at, browser FROM web_sessions
WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) AND expires_at > :now ORDER BY created_at, id

-- name: web_sessions_all
-- List the tenant's web sessions that have not expired, with the names of their people.
SELECT w.id, w.user_id, w.created_at, w.expires_at, w.last_used_at, w.browser, u.name AS user_name
FROM web_sessions AS w JOIN users AS u ON u.tenant_id = w.tenant_id AND u.id = w.user_id
WHERE w.tenant_id = :tenant_id AND w.expires_at > :now ORDER BY u.name, w.created_at, w.id

-- name: web_session_is_valid
-- Whether a web session has neither ended nor expired.
SELECT EXISTS (SELECT FROM web_sessions WHERE tenant_id = :tenant_id AND id = :id AND expires_at > :now)

-- name: web_session_used
-- Record when a web session was used, at most once in the time since `before`.
UPDATE web_sessions SET last_used_at = :now
WHERE tenant_id = :tenant_id AND id = :id AND (last_used_at IS NULL OR last_used_at <= :before)

-- name: web_sessions_end
-- End web sessions.
DELETE FROM web_sessions WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[]) RETURNING user_id

-- name: web_sessions_delete_of
-- Delete all web sessions of these users.
DELETE FROM web_sessions WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[]) RETURNING id

-- name: web_sessions_delete_expired
-- Delete expired web sessions.
DELETE FROM web_sessions WHERE tenant_id = :tenant_id AND expires_at <= :now RETURNING id

-- name: sign_ins_end_all
-- After a restore, end every web session, every login link and every token of an app, of all tenants: who signed out since
-- the backup stays so.
WITH links AS (DELETE FROM login_links), codes AS (DELETE FROM app_codes), tokens AS (DELETE FROM app_tokens)
DELETE FROM web_sessions
