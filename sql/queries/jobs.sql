-- name: job_begin
-- Begin a run of a job, or begin it again if an earlier attempt failed; no row when this slot is done.
INSERT INTO job_runs AS r (name, slot, state, started_at) VALUES (:name, :slot, 'running', :now)
ON CONFLICT (name, slot) DO UPDATE
    SET state = 'running', started_at = excluded.started_at, ended_at = NULL, attempts = r.attempts + 1
    WHERE r.state <> 'done'
RETURNING attempts

-- name: job_end
-- Record the end of a run with its counts and a note.
UPDATE job_runs SET state = :state, ended_at = :now, done = :done, failed = :failed, note = :note WHERE name = :name
    AND slot = :slot

-- name: job_latest
-- Get the last run of each job.
SELECT DISTINCT ON (name) name, slot, state, attempts, started_at, ended_at, done, failed, note
FROM job_runs ORDER BY name, slot DESC

-- name: job_last_done
-- Get the last completed slot of each job; later slots were missed. Slots after `now` were run by hand for a later
-- time.
SELECT name, max(slot) AS slot FROM job_runs WHERE state = 'done' AND slot <= :now GROUP BY name

-- name: job_prune
-- Delete old runs.
DELETE FROM job_runs WHERE slot < :before
