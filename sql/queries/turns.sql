-- name: turns_insert
-- What for: queue answers, in the transaction that stores the message. $1 tenant, $2 ids, $3 conversations, $4 messages,
-- $5 agents, $6 adapters, $7 the process that will answer, $8 times.
INSERT INTO turns (tenant_id, id, conversation_id, message_id, agent_id, adapter, state, claimed_by, queued_at)
SELECT $1, id, conversation_id, message_id, agent_id, adapter, 'queued', $7, at
FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $8::timestamptz[])
     AS new (id, conversation_id, message_id, agent_id, adapter, at)
ON CONFLICT DO NOTHING

-- name: turns_open
-- What for: what this process has still to answer or to send, oldest first. $1 tenant, $2 process.
SELECT t.id, t.conversation_id, t.message_id, t.agent_id, t.adapter, t.state
FROM turns AS t
WHERE t.tenant_id = $1 AND t.state <> 'sent' AND t.claimed_by = $2
ORDER BY t.queued_at, t.id

-- name: turns_adopt
-- What for: take over what a process that is no more has left unanswered: it held an advisory lock under its own number
-- while it lived. $1 tenant, $2 the new process, $3 adapters that it serves.
UPDATE turns AS t SET claimed_by = $2
WHERE t.tenant_id = $1 AND t.state <> 'sent' AND t.claimed_by <> $2 AND t.adapter = ANY ($3::text[])
      AND NOT EXISTS (
          SELECT FROM pg_locks AS l
          WHERE l.locktype = 'advisory' AND l.objsubid = 1
                AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
                AND (l.classid::bigint << 32 | l.objid::bigint) = t.claimed_by)
RETURNING t.id

-- name: turn_get
-- What for: one turn. $1 tenant, $2 id.
SELECT t.id, t.conversation_id, t.message_id, t.agent_id, t.adapter, t.state, t.reply_id, t.failure, t.prompt, t.timings_ms,
       t.model, t.prompt_tokens, t.completion_tokens, t.queued_at, t.answered_at
FROM turns AS t WHERE t.tenant_id = $1 AND t.id = $2

-- name: turn_answer
-- What for: the answer is known and stored; nothing changes if it already was. $1 tenant, $2 turn, $3 reply message or
-- NULL, $4 failure or NULL, $5 prompt, $6 timings, $7 model, $8 prompt tokens, $9 completion tokens, $10 cached tokens (all as the
-- API reported them), $11 now, $12 prompt tokens as we counted them, $13 those that the prompt before it began with too.
UPDATE turns SET state = 'answered', reply_id = $3, failure = $4, prompt = $5, timings_ms = $6, model = $7,
       prompt_tokens = $8, completion_tokens = $9, cached_tokens = $10, answered_at = $11,
       counted_tokens = $12, reused_tokens = $13
WHERE tenant_id = $1 AND id = $2 AND state = 'queued'
RETURNING id

-- name: turn_sent
-- What for: the person has it. $1 tenant, $2 turn, $3 now.
UPDATE turns SET state = 'sent', sent_at = $3 WHERE tenant_id = $1 AND id = $2 AND state = 'answered'

-- name: turn_refused
-- What for: the platform will never take the answer: it is not tried again, and why is kept. $1 tenant, $2 turn, $3 why.
UPDATE turns SET state = 'sent', failure = $3 WHERE tenant_id = $1 AND id = $2 AND state = 'answered'

-- name: turn_latest
-- What for: what /why explains: the last answered turn of a person here, or the one that a message asked for.
-- $1 tenant, $2 conversation, $3 asker, $4 external id of the message or NULL.
SELECT t.id, t.prompt, t.timings_ms, t.model, t.prompt_tokens, t.completion_tokens, t.answered_at
FROM turns AS t JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.message_id
WHERE t.tenant_id = $1 AND t.conversation_id = $2 AND m.user_id = $3 AND t.prompt IS NOT NULL
      AND ($4::text IS NULL OR m.external_id = $4)
ORDER BY t.queued_at DESC, t.id
LIMIT 1

-- name: turn_counts
-- What for: what our count of the last prompt here was, and what the API said. $1 tenant, $2 conversation, $3 model, $4 run:
-- a prompt from a room's private time, or one that held something erased since, has no say in what comes after it.
SELECT t.counted_tokens, t.prompt_tokens FROM turns AS t
JOIN messages AS m ON m.tenant_id = t.tenant_id AND m.id = t.message_id
WHERE t.tenant_id = $1 AND t.conversation_id = $2 AND t.model = $3 AND m.namespace = $4
      AND t.prompt IS NOT NULL AND t.prompt_tokens > 0 AND t.counted_tokens > 0
ORDER BY t.queued_at DESC, t.id
LIMIT 1

-- name: turn_before
-- What for: an agent's last stored prompt in a conversation, to see how much of the next one begins like it. $1 tenant,
-- $2 conversation, $3 agent, $4 the turn that is being answered.
SELECT t.prompt -> 'role_messages' AS role_messages FROM turns AS t
WHERE t.tenant_id = $1 AND t.conversation_id = $2 AND t.agent_id = $3 AND t.id <> $4 AND t.prompt IS NOT NULL
ORDER BY t.queued_at DESC, t.answered_at DESC, t.id
LIMIT 1
