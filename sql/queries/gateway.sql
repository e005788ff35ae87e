-- name: gateway_turn_put
-- Record what was put into a request, in place of what an earlier one of the same turn got.
INSERT INTO gateway_turns AS t (tenant_id, user_id, vendor, digest, standing, recalled, created_at)
SELECT :tenant_id, u.id, :vendor, :digest, :standing, :recalled, :now FROM users AS u
WHERE u.tenant_id = :tenant_id AND u.id = :user_id
ON CONFLICT (tenant_id, user_id, vendor, digest) DO UPDATE
SET standing = excluded.standing, recalled = excluded.recalled, created_at = excluded.created_at

-- name: gateway_turns_bound
-- Delete all but the latest so many records of a user.
DELETE FROM gateway_turns WHERE tenant_id = :tenant_id AND user_id = :user_id AND (vendor, digest) IN (
    SELECT vendor, digest FROM gateway_turns WHERE tenant_id = :tenant_id AND user_id = :user_id
    ORDER BY created_at DESC, digest OFFSET :most
)

-- name: gateway_turn_get
-- Get what was put into the request of a turn since a time.
SELECT standing, recalled FROM gateway_turns
WHERE tenant_id = :tenant_id AND user_id = :user_id AND vendor = :vendor AND digest = :digest AND created_at > :since

-- name: gateway_turns_delete_before
-- Delete records from before a time.
DELETE FROM gateway_turns WHERE tenant_id = :tenant_id AND created_at < :before

-- name: gateway_turns_delete_of
-- Delete the records of people who are erased.
DELETE FROM gateway_turns WHERE tenant_id = :tenant_id AND user_id = ANY (:user_ids::uuid[])
