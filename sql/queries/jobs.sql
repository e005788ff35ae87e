-- name: job_begin
-- Begin a run of a job, or begin it again if an earlier attempt failed; no row when the run of this time is done.
INSERT INTO job_runs AS r (name, due_at, state, started_at) VALUES (:name, :due_at, 'running', :now)
ON CONFLICT (name, due_at) DO UPDATE
    SET state = 'running', started_at = excluded.started_at, ended_at = NULL, attempts = r.attempts + 1
    WHERE r.state <> 'done'
RETURNING attempts

-- name: job_end
-- Record the end of a run with its counts and a note.
UPDATE job_runs SET state = :state, ended_at = :now, done = :done, failed = :failed, note = :note WHERE name = :name
    AND due_at = :due_at

-- name: job_latest
-- Get the last run of each job, with the time of its last completed run (later ones were missed; runs after `now`
-- were started by hand for a later time), and when its last successful one ended.
SELECT DISTINCT ON (name) name, due_at, state, attempts, started_at, ended_at, done, failed, note,
       max(due_at) FILTER (WHERE state = 'done' AND due_at <= :now) OVER own AS completed_at,
       max(ended_at) FILTER (WHERE state = 'done') OVER own AS succeeded_at
FROM job_runs WINDOW own AS (PARTITION BY name) ORDER BY name, due_at DESC

-- name: job_prune
-- Delete old runs.
DELETE FROM job_runs WHERE due_at < :before
