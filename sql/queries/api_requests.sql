-- name: api_request_begin
-- Record a write, in the transaction that makes it. No row where it is recorded already, unless it was made before a time.
INSERT INTO api_requests (tenant_id, credential, key_digest, digest, user_id, created_at)
VALUES (:tenant_id, :credential, :key_digest, :digest, :user_id, :now)
ON CONFLICT (tenant_id, credential, key_digest) DO UPDATE
SET digest = excluded.digest, user_id = excluded.user_id, made = NULL, created_at = excluded.created_at
WHERE api_requests.created_at <= :before
RETURNING true

-- name: api_request_get
-- Get what a recorded write was, and what it made.
SELECT digest, made, created_at FROM api_requests
WHERE tenant_id = :tenant_id AND credential = :credential AND key_digest = :key_digest

-- name: api_request_made
-- Record what a write made.
UPDATE api_requests SET made = :made
WHERE tenant_id = :tenant_id AND credential = :credential AND key_digest = :key_digest

-- name: api_requests_delete_before
-- Delete writes from before a time: what repeats them is made anew.
DELETE FROM api_requests WHERE tenant_id = :tenant_id AND created_at < :before
