-- name: learning_claim
-- Claim a scope for one attempt, until the attempt ends or its time runs out; get how often it has failed in a row.
INSERT INTO learning_batches AS b (tenant_id, scope, conversation_id, user_id, claim, claimed_until)
VALUES (:tenant_id, :scope, :conversation_id::uuid, :user_id::uuid, :claim, :until)
ON CONFLICT (tenant_id, scope) DO UPDATE SET claim = excluded.claim, claimed_until = excluded.claimed_until
WHERE b.parked_at IS NULL AND (b.claimed_until IS NULL OR b.claimed_until <= :now)
      AND (b.due_at IS NULL OR b.due_at <= :now)
RETURNING attempts

-- name: learning_hold
-- Lock an attempt's claim, if it still has it, until this transaction ends; get how often its scope has failed in a row.
SELECT attempts FROM learning_batches WHERE tenant_id = :tenant_id AND scope = :scope AND claim = :claim FOR UPDATE

-- name: learning_end
-- End an attempt that succeeded.
DELETE FROM learning_batches WHERE tenant_id = :tenant_id AND scope = :scope AND claim = :claim

-- name: learning_release
-- Give up a claim: with an `error`, after a failure, the scope is retried at `due_at` or parked; without one, the next attempt
-- may start at once.
UPDATE learning_batches
SET claim = NULL, claimed_until = NULL, attempts = attempts + (:error::text IS NOT NULL)::int, error = coalesce(:error, error),
    due_at = coalesce(:due_at::timestamptz, due_at), parked_at = coalesce(:parked_at::timestamptz, parked_at)
WHERE tenant_id = :tenant_id AND scope = :scope AND claim = :claim

-- name: learning_unpark
-- Let parked scopes be tried again.
UPDATE learning_batches SET parked_at = NULL, attempts = 0, due_at = NULL, error = NULL
WHERE tenant_id = :tenant_id AND parked_at IS NOT NULL RETURNING scope
