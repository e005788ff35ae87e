-- The time that a run of a job stands for is when it was due: jobs/runner.py and `nexus jobs` call it so.
ALTER TABLE job_runs RENAME COLUMN slot TO due_at;
