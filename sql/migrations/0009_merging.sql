-- Statements that say the same in other words.

-- The statement of the same scope that this one is one with. It stays, so that it is forgotten with what it says and so
-- that its words are known when they are said again; recall never finds it (`expires_at` in the index is its own time).
ALTER TABLE memories ADD COLUMN merged_into uuid;
CREATE INDEX memories_merged ON memories (tenant_id, merged_into) WHERE merged_into IS NOT NULL;
