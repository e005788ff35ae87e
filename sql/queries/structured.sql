-- name: structured_readable
-- Get the facts and landmarks that a prompt shows, and the names of some users, each as a list, in one round trip.
SELECT ARRAY(SELECT fact FROM (
{{facts_readable}}
) AS fact) AS facts, ARRAY(SELECT landmark FROM (
{{landmarks_readable}}
) AS landmark) AS landmarks, ARRAY(
    SELECT (id, name) FROM users WHERE tenant_id = :tenant_id AND id = ANY (:ids::uuid[])
) AS names
