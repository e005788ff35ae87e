-- name: request_begin
-- Record a request. No row where it is known already: a write over the API is recorded by the transaction that makes it, a
-- command before it runs. `call` is JSON text.
INSERT INTO requests AS r (tenant_id, caller, key_digest, digest, user_id, created_at, expires_at, process, call)
VALUES (:tenant_id, :caller, :key_digest, :digest, :user_id::uuid, :now, :expires_at, :process::bigint, :call::jsonb)
ON CONFLICT (tenant_id, caller, key_digest) DO UPDATE
SET digest = excluded.digest, user_id = excluded.user_id, made = NULL, created_at = excluded.created_at,
    expires_at = excluded.expires_at, process = excluded.process, call = excluded.call
WHERE r.expires_at <= :now
RETURNING true

-- name: request_get
-- Keep a recorded request as it is until the transaction ends, and get what it was, what it made, and whether another process
-- has taken it over.
SELECT digest, made, created_at, process IS DISTINCT FROM :process::bigint AS taken FROM requests
WHERE tenant_id = :tenant_id AND caller = :caller AND key_digest = :key_digest
FOR UPDATE

-- name: request_made
-- Record, in the transaction that makes it, what a request made.
UPDATE requests SET made = :made WHERE tenant_id = :tenant_id AND caller = :caller AND key_digest = :key_digest

-- name: request_answered
-- Delete the call of a command that was answered, unless another process has taken it over.
UPDATE requests SET call = NULL
WHERE tenant_id = :tenant_id AND caller = :caller AND key_digest = :key_digest AND process = :process

-- name: requests_take_over
-- Take over unanswered commands of processes that have ended.
UPDATE requests AS r SET process = :process
WHERE r.tenant_id = :tenant_id AND r.call ->> 'at' = :at AND r.process <> :process
      AND r.process NOT IN (SELECT live_processes())
RETURNING r.key_digest, r.created_at, r.call, r.made
