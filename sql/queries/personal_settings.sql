-- name: personal_settings_put
-- Set everything that one of a person's users has set for themselves.
INSERT INTO personal_settings (tenant_id, user_id, recall, strategy, budget, trash_days, keep_days, timezone, changed_at)
VALUES (:tenant_id, :user_id, :recall, :strategy, :budget, :trash_days, :keep_days, :timezone, :now)
ON CONFLICT (tenant_id, user_id) DO UPDATE
SET recall = excluded.recall, strategy = excluded.strategy, budget = excluded.budget, trash_days = excluded.trash_days,
    keep_days = excluded.keep_days, timezone = excluded.timezone, changed_at = excluded.changed_at
