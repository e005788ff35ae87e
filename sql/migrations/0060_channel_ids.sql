-- The ids that a platform has given to a room since it was stored, the present one last: Slack gives another one to a private channel
-- that is shared with other organisations. Within Nexus a room keeps the name that its first id gave it.
ALTER TABLE conversations ADD COLUMN later_ids text[] NOT NULL DEFAULT '{}';
CREATE INDEX conversations_with_later_ids ON conversations (tenant_id, platform, workspace) WHERE later_ids <> '{}';
