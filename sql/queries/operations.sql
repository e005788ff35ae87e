-- name: operations_add
-- Add operations to the totals of their months. Who has opted out, and whose name was erased (`nameless`), is not named,
-- and neither is a tool of theirs.
INSERT INTO operation_totals AS t (tenant_id, month, user_id, vendor, operation, count, tokens)
SELECT :tenant_id, n.month, CASE WHEN u.opted_out OR u.name = :nameless THEN '00000000-0000-0000-0000-000000000000' ELSE u.id END,
       CASE WHEN n.vendor <> 'api' AND (u.opted_out OR u.name = :nameless) THEN 'other' ELSE n.vendor END,
       n.operation, sum(n.count)::bigint, sum(n.tokens)::bigint
FROM unnest(:months::date[], :user_ids::uuid[], :vendors::text[], :operations::text[], :counts::bigint[], :tokens::bigint[])
     AS n (month, user_id, vendor, operation, count, tokens)
JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = n.user_id
GROUP BY 2, 3, 4, 5 ORDER BY 2, 3, 4, 5
ON CONFLICT (tenant_id, month, user_id, vendor, operation) DO UPDATE
SET count = t.count + excluded.count, tokens = t.tokens + excluded.tokens

-- name: operations_note_requests
-- Record requests that named an idempotency key. Returns the digests of those that were not known.
INSERT INTO requests AS r (tenant_id, caller, key_digest, digest, user_id, created_at, expires_at)
SELECT :tenant_id, 'operation', n.digest, n.digest, u.id, :now, :expires_at
FROM unnest(:digests::bytea[], :user_ids::uuid[]) AS n (digest, user_id)
JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = n.user_id
ORDER BY n.digest
ON CONFLICT (tenant_id, caller, key_digest) DO UPDATE
SET created_at = excluded.created_at, expires_at = excluded.expires_at
WHERE r.expires_at <= :now
RETURNING key_digest

-- name: operations_report
-- Show the totals since a month: of everyone, or of some users.
SELECT month, operation, vendor, sum(count)::bigint AS count, sum(tokens)::bigint AS tokens FROM operation_totals
WHERE tenant_id = :tenant_id AND month >= :since AND (:user_ids::uuid[] IS NULL OR user_id = ANY (:user_ids::uuid[]))
GROUP BY month, operation, vendor ORDER BY month DESC, operation, vendor

-- name: operations_blank
-- Take people out of the totals of some months, or of all, with the names that their tools have; the figures remain.
WITH own AS (
    DELETE FROM operation_totals AS t
    WHERE t.tenant_id = :tenant_id AND t.user_id = ANY (:user_ids::uuid[])
          AND (:since::date IS NULL OR t.month >= date_trunc('month', :since::date))
          AND (:until::date IS NULL OR t.month <= :until)
    RETURNING t.*
)
INSERT INTO operation_totals AS t (tenant_id, month, user_id, vendor, operation, count, tokens)
SELECT :tenant_id, o.month, '00000000-0000-0000-0000-000000000000', CASE WHEN o.vendor = 'api' THEN o.vendor ELSE 'other' END,
       o.operation, sum(o.count), sum(o.tokens)
FROM own AS o GROUP BY 2, 4, 5 ORDER BY 2, 4, 5
ON CONFLICT (tenant_id, month, user_id, vendor, operation) DO UPDATE
SET count = t.count + excluded.count, tokens = t.tokens + excluded.tokens

-- name: entries_stored
-- Count a tenant's entries, of everyone, without those in the trash.
SELECT count(*) FROM memories
WHERE tenant_id = :tenant_id AND trashed_at IS NULL AND superseded_by IS NULL AND merged_into IS NULL AND origin <> 'extracted'
      AND (starts_with(namespace, 'entries:') OR starts_with(namespace, 'team:') OR starts_with(namespace, 'project:'))

-- name: quota_notices_put
-- Note for each admin that most of a quota is used in a month, once.
INSERT INTO quota_notices (tenant_id, month, quota, user_id, used, most)
SELECT :tenant_id, :month, :quota, u.id, :used, :most FROM users AS u
WHERE u.tenant_id = :tenant_id AND u.admin AND NOT u.opted_out
ON CONFLICT DO NOTHING
RETURNING user_id

-- name: quota_notice_take
-- Take a notice that is not posted yet, where this process delivers (`served`, see turns_unowned), to an admin who still is
-- one and is not among `excluded_ids`, and that no other process holds, and record that the admin is notified; with
-- `position_user_id` (the terminal) only to that person.
WITH due AS MATERIALIZED (
    SELECT n.month, n.quota, n.user_id, i.platform, i.workspace
    FROM quota_notices AS n
    JOIN users AS u ON u.tenant_id = :tenant_id AND u.id = n.user_id
    JOIN identities AS i ON i.tenant_id = :tenant_id AND i.user_id = n.user_id
    WHERE n.tenant_id = :tenant_id AND n.told_at IS NULL AND u.admin AND NOT u.opted_out AND i.platform <> 'rest'
          AND ARRAY[i.platform, i.platform || ':' || i.workspace] && :served::text[]
          AND NOT n.user_id = ANY (:excluded_ids::uuid[])
          AND (:position_user_id::uuid IS NULL OR n.user_id = :position_user_id)
    ORDER BY n.month, n.quota, n.user_id, i.platform, i.workspace
    LIMIT 1
    FOR UPDATE OF n SKIP LOCKED
)
UPDATE quota_notices AS n SET told_at = :now FROM due
WHERE n.tenant_id = :tenant_id AND n.month = due.month AND n.quota = due.quota AND n.user_id = due.user_id
RETURNING n.month, n.quota, n.user_id AS "user", n.used, n.most, due.platform, due.workspace
