-- Why a message could not be indexed, or extracted from: the class of the error and its line, never text. It is tried again
-- when it is edited and when Nexus starts (nexus doctor shows it meanwhile).
ALTER TABLE messages ADD COLUMN skipped text;
CREATE INDEX messages_skipped ON messages (tenant_id, id) WHERE skipped IS NOT NULL;
