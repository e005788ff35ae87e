-- A reminder whose post the platform refused for good is `refused` until who asked was told in their DM; then it has ended.
ALTER TABLE reminders DROP CONSTRAINT reminders_state_check;
ALTER TABLE reminders ADD CONSTRAINT reminders_state_check CHECK (state IN ('open', 'refused', 'ended'));
CREATE INDEX reminders_refused ON reminders (tenant_id, due_at) WHERE state = 'refused';
