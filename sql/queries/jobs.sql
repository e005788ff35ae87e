-- name: job_begin
-- What for: a run begins, again if an earlier try did not end well; no row when this slot is done. $1 name, $2 slot, $3 now.
INSERT INTO job_runs AS r (name, slot, state, started_at) VALUES ($1, $2, 'running', $3)
ON CONFLICT (name, slot) DO UPDATE
    SET state = 'running', started_at = excluded.started_at, ended_at = NULL, attempts = r.attempts + 1
    WHERE r.state <> 'done'
RETURNING attempts

-- name: job_end
-- What for: a run has ended. $1 name, $2 slot, $3 state, $4 now, $5 how much was done, $6 how much failed, $7 a sentence.
UPDATE job_runs SET state = $3, ended_at = $4, done = $5, failed = $6, said = $7 WHERE name = $1 AND slot = $2

-- name: job_latest
-- What for: the last run of each job. No parameters.
SELECT DISTINCT ON (name) name, slot, state, attempts, started_at, ended_at, done, failed, said
FROM job_runs ORDER BY name, slot DESC

-- name: job_last_done
-- What for: the last slot of each job that is done; what came after it was missed. $1 now: runs as of later are a
-- person's own.
SELECT name, max(slot) AS slot FROM job_runs WHERE state = 'done' AND slot <= $1 GROUP BY name

-- name: job_prune
-- What for: runs of long ago. $1 before when.
DELETE FROM job_runs WHERE slot < $1

-- name: memories_expired
-- What for: what was written with an end, and has run out. What was drawn from talk only fades: recall leaves it out, and
-- it stays for who asks what held before; and what it superseded must not hold again. $1 tenant, $2 now, $3 how many.
SELECT id FROM memories WHERE tenant_id = $1 AND expires_at <= $2 AND origin <> 'extracted'
ORDER BY expires_at, id LIMIT $3

-- name: memories_in_trash
-- What for: what was put into the trash before a moment. $1 tenant, $2 when, $3 how many.
SELECT id FROM memories WHERE tenant_id = $1 AND deleted_at <= $2 ORDER BY deleted_at, id LIMIT $3

-- name: messages_retained
-- What for: messages that are older than a tenant keeps them. $1 tenant, $2 before when, $3 how many.
SELECT id FROM messages WHERE tenant_id = $1 AND at < $2 ORDER BY at, id LIMIT $3

-- name: link_codes_expired
-- What for: codes that nobody entered. $1 tenant, $2 now.
DELETE FROM link_codes WHERE tenant_id = $1 AND expires_at <= $2

-- name: commands_run_long_ago
-- What for: commands of long ago, which no platform delivers again. $1 tenant, $2 before when.
DELETE FROM commands WHERE tenant_id = $1 AND received_at < $2

-- name: usage_roll_up
-- What for: what was used, by day (UTC), agent and model, from the last day that was rolled up on; again and again with the
-- same outcome. $1 tenant, $2 until when.
INSERT INTO usage_days (tenant_id, day, agent_id, model, turns, failures, prompt_tokens, completion_tokens, cached_tokens)
SELECT $1, (t.answered_at AT TIME ZONE 'UTC')::date, t.agent_id, coalesce(t.model, ''), count(*), count(t.failure),
       coalesce(sum(t.prompt_tokens), 0), coalesce(sum(t.completion_tokens), 0), coalesce(sum(t.cached_tokens), 0)
FROM turns AS t
WHERE t.tenant_id = $1 AND t.answered_at <= $2
      AND t.answered_at >= coalesce((SELECT max(day) FROM usage_days WHERE tenant_id = $1), '-infinity'::date)::timestamp
                           AT TIME ZONE 'UTC'
GROUP BY 2, 3, 4
ON CONFLICT (tenant_id, day, agent_id, model) DO UPDATE
    SET turns = excluded.turns, failures = excluded.failures, prompt_tokens = excluded.prompt_tokens,
        completion_tokens = excluded.completion_tokens, cached_tokens = excluded.cached_tokens
