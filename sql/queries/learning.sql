-- name: learning_claim
-- Claim a scope for one attempt, until the attempt ends or its time runs out.
INSERT INTO learning_batches AS b (tenant_id, scope, conversation_id, user_id, claim, claimed_until)
VALUES (:tenant_id, :scope, :conversation_id::uuid, :user_id::uuid, :claim, :until)
ON CONFLICT (tenant_id, scope) DO UPDATE SET claim = excluded.claim, claimed_until = excluded.claimed_until
WHERE b.parked_at IS NULL AND (b.claimed_until IS NULL OR b.claimed_until <= :now)
      AND (b.due_at IS NULL OR b.due_at <= :now)
RETURNING claim

-- name: learning_hold
-- Lock an attempt's claim, if it still has it, until this transaction ends.
SELECT claim FROM learning_batches WHERE tenant_id = :tenant_id AND scope = :scope AND claim = :claim FOR UPDATE

-- name: learning_end
-- End an attempt that succeeded.
DELETE FROM learning_batches WHERE tenant_id = :tenant_id AND scope = :scope AND claim = :claim

-- name: learning_release
-- End an attempt without recording a failure. The next one may start at once.
UPDATE learning_batches SET claim = NULL, claimed_until = NULL
WHERE tenant_id = :tenant_id AND scope = :scope AND claim = :claim

-- name: learning_failed
-- End a failed attempt: retry at `due_at`, or park the scope.
UPDATE learning_batches
SET claim = NULL, claimed_until = NULL, attempts = attempts + 1, error = :error, due_at = :due_at,
    parked_at = :parked_at
WHERE tenant_id = :tenant_id AND scope = :scope AND claim = :claim

-- name: learning_attempts
-- Count a scope's failed attempts in a row.
SELECT attempts FROM learning_batches WHERE tenant_id = :tenant_id AND scope = :scope

-- name: learning_unpark
-- Let parked scopes be tried again.
UPDATE learning_batches SET parked_at = NULL, attempts = 0, due_at = NULL, error = NULL
WHERE tenant_id = :tenant_id AND parked_at IS NOT NULL RETURNING scope

-- name: learning_backlog
-- Count queued messages and parked scopes, with the last error, for doctor.
SELECT (SELECT count(*) FROM extraction_queue WHERE tenant_id = :tenant_id) AS waiting,
       (SELECT count(*) FROM learning_batches WHERE tenant_id = :tenant_id AND parked_at IS NOT NULL) AS parked,
       (SELECT error FROM learning_batches WHERE tenant_id = :tenant_id AND parked_at IS NOT NULL
           ORDER BY parked_at DESC LIMIT 1) AS error
