-- name: changes_note
-- Record when changes of these subjects were asked for. Returns whether a change of any of them was asked for later; until the
-- transaction ends, nobody else changes them.
WITH noted AS (
    INSERT INTO changes AS c (tenant_id, subject, asked_at)
    SELECT :tenant_id, subject, :asked_at FROM unnest(:subjects::uuid[]) AS new (subject) ORDER BY subject
    ON CONFLICT (tenant_id, subject) DO UPDATE SET asked_at = greatest(c.asked_at, excluded.asked_at)
    RETURNING c.asked_at
)
SELECT coalesce(bool_or(asked_at > :asked_at), false) FROM noted

-- name: changes_asked_since
-- Check whether a change of any of these subjects was asked for after a time.
SELECT EXISTS (SELECT FROM changes
               WHERE tenant_id = :tenant_id AND subject = ANY (:subjects::uuid[]) AND asked_at > :asked_at)

-- name: changes_delete_before
-- Delete the records of old changes, which no interrupted command can be older than.
DELETE FROM changes WHERE tenant_id = :tenant_id AND asked_at < :before
