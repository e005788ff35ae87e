-- name: command_begin
-- Record a command; no row when it is recorded already, so that a repeated event does not run it again. `call` is JSON
-- text.
INSERT INTO commands (tenant_id, id, received_at, adapter, workspace, process, call)
VALUES (:tenant_id, :id, :now, :adapter, :workspace, :process, :call::jsonb)
ON CONFLICT DO NOTHING RETURNING id

-- name: command_done
-- Record, in the transaction that makes its changes, that a command's changes are made.
UPDATE commands SET done = true WHERE tenant_id = :tenant_id AND id = :id

-- name: command_answered
-- Record that a command was answered, and delete its text, unless another process has taken it over.
UPDATE commands SET call = NULL WHERE tenant_id = :tenant_id AND id = :id AND process = :process

-- name: command_hold
-- Keep a command as it is until the transaction ends, and get whether its changes are made, and whether another process has
-- taken it over.
SELECT done, process <> :process AS taken FROM commands WHERE tenant_id = :tenant_id AND id = :id FOR UPDATE

-- name: commands_adopt
-- Take over unanswered commands of processes that have ended.
UPDATE commands AS c SET process = :process
WHERE c.tenant_id = :tenant_id AND c.call IS NOT NULL AND c.process <> :process AND c.adapter = :adapter
      AND c.workspace = :workspace
      AND c.process NOT IN (SELECT live_processes())
RETURNING c.id, c.received_at, c.call, c.done
