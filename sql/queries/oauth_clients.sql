-- name: oauth_client_insert
-- Store an app that has registered itself. Of those that nobody has connected, only the newest `kept` stay besides.
WITH older AS (
    DELETE FROM oauth_clients WHERE id IN (
        SELECT id FROM oauth_clients WHERE used_at IS NULL ORDER BY created_at DESC, id OFFSET :kept
    )
)
INSERT INTO oauth_clients (id, name, redirect_uris, auth_method, secret_digest, created_at)
VALUES (:id, :name, :redirect_uris::text[], :auth_method, :secret_digest, :now)

-- name: oauth_client_find
-- Find an app that has registered itself, unless its time has passed.
SELECT id, name, redirect_uris, auth_method, secret_digest FROM oauth_clients
WHERE id = :id AND coalesce(used_at, created_at) > CASE WHEN used_at IS NULL THEN :unused_before::timestamptz
                                                         ELSE :used_before::timestamptz END

-- name: oauth_client_used
-- Record that somebody has connected an app, or that it got tokens, at most once in the time since `before`.
UPDATE oauth_clients SET used_at = :now WHERE id = :id AND (used_at IS NULL OR used_at <= :before)

-- name: oauth_clients_delete_unused
-- Delete apps that nobody connected in time, and those that got no tokens for long.
DELETE FROM oauth_clients
WHERE coalesce(used_at, created_at) <= CASE WHEN used_at IS NULL THEN :unused_before::timestamptz
                                            ELSE :used_before::timestamptz END
