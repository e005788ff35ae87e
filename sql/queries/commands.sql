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

-- name: commands_unanswered
-- List the unanswered commands, but one (NULL: all), with who gave them (NULL: nobody who is known).
SELECT c.id, c.adapter, c.received_at, c.call, i.user_id
FROM commands AS c
LEFT JOIN identities AS i ON i.tenant_id = c.tenant_id AND i.platform = c.adapter AND i.workspace = c.workspace
                             AND i.external_id = c.call -> 'incoming' ->> 'user'
WHERE c.tenant_id = :tenant_id AND c.call IS NOT NULL AND c.id IS DISTINCT FROM :except_id::uuid
ORDER BY c.id

-- name: command_state
-- Get whether a command's text was deleted, whether its changes are made, and whether another process has taken it over.
SELECT call IS NULL AS discarded, done, process <> :process AS taken FROM commands WHERE tenant_id = :tenant_id AND id = :id

-- name: command_hold
-- Keep a command as it is until the transaction ends, and get its state.
{{command_state}}
FOR UPDATE

-- name: commands_lock
-- Let no other transaction that takes this lock change the records of several commands until this one ends.
SELECT pg_advisory_xact_lock(hashtextextended('commands:' || (:tenant_id::uuid)::text, 0))

-- name: commands_discard_calls
-- Delete the text of unanswered commands.
UPDATE commands SET call = NULL WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])

-- name: commands_adopt
-- Take over unanswered commands of processes that have ended.
UPDATE commands AS c SET process = :process
WHERE c.tenant_id = :tenant_id AND c.call IS NOT NULL AND c.process <> :process AND c.adapter = :adapter
      AND c.workspace = :workspace
      AND c.process NOT IN (SELECT live_processes())
RETURNING c.id, c.received_at, c.call, c.done
