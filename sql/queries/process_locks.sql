-- name: process_locks_take
-- Lock those of these things that no other process has locked, for as long as the connection lasts; list them.
SELECT id FROM unnest(:ids::uuid[]) AS id WHERE pg_try_advisory_lock(process_lock(id))

-- name: process_locks_release
-- Unlock things.
SELECT pg_advisory_unlock(process_lock(id)) FROM unnest(:ids::uuid[]) AS id

-- name: process_locks_live
-- Lock the number of a process, for as long as the connection lasts: it shows that the process lives.
SELECT pg_advisory_lock(:number)

-- name: tenants_with_open_work
-- List the tenants that have open turns, or files to be read.
SELECT * FROM tenants_with_open_work() AS tenant_id

-- name: processes_count
-- Count the processes that live, by the numbers that they lock: above `random_bits` they are `numbers`.
SELECT count(*) FROM live_processes() AS number WHERE number >> :random_bits = :numbers
