-- name: personal_settings_put
-- Set everything that one of a person's users has set for themselves.
INSERT INTO personal_settings (tenant_id, user_id, recall, strategy, budget, trash_days, keep_days, timezone, changed_at)
VALUES (:tenant_id, :user_id, :recall, :strategy, :budget, :trash_days, :keep_days, :timezone, :now)
ON CONFLICT (tenant_id, user_id) DO UPDATE
SET recall = excluded.recall, strategy = excluded.strategy, budget = excluded.budget, trash_days = excluded.trash_days,
    keep_days = excluded.keep_days, timezone = excluded.timezone, changed_at = excluded.changed_at

-- name: own_settings
-- Get what a person has set for themselves: the latest change counts.
SELECT s.user_id, s.recall, s.strategy, s.budget, s.trash_days, s.keep_days, s.timezone, s.changed_at
FROM personal_settings AS s
WHERE s.tenant_id = :tenant_id AND s.user_id = ANY (:user_ids::uuid[])
ORDER BY s.changed_at DESC, s.user_id
LIMIT 1
