-- The open page of a room is told of what people say there.
CREATE TRIGGER messages_shown AFTER INSERT ON messages FOR EACH ROW
    WHEN (NEW.namespace LIKE 'room:%' AND NEW.agent_id IS NULL AND NOT NEW.ephemeral) EXECUTE FUNCTION note_changed();
CREATE TRIGGER messages_shown_edited AFTER UPDATE OF text ON messages FOR EACH ROW
    WHEN (NEW.namespace LIKE 'room:%' AND NEW.agent_id IS NULL AND NOT NEW.ephemeral AND OLD.text IS DISTINCT FROM NEW.text)
    EXECUTE FUNCTION note_changed();
CREATE TRIGGER messages_gone AFTER DELETE ON messages FOR EACH ROW
    WHEN (OLD.namespace LIKE 'room:%' AND OLD.agent_id IS NULL AND NOT OLD.ephemeral) EXECUTE FUNCTION note_changed();
-- What an admin is told of each person counts that person's entries alone.
DROP INDEX memories_entries;
CREATE INDEX memories_entries ON memories (tenant_id, user_id)
    WHERE trashed_at IS NULL AND superseded_by IS NULL AND merged_into IS NULL AND origin <> 'extracted'
          AND (starts_with(namespace, 'entries:') OR starts_with(namespace, 'team:') OR starts_with(namespace, 'project:'));
-- A list of one's own in the order of changes, as memories_by_user_at for that of their creation.
CREATE INDEX memories_by_user_changed ON memories (tenant_id, user_id, coalesce(updated_at, created_at) DESC, id DESC);
-- In which places somebody has how many memories.
CREATE INDEX memories_by_user_place ON memories (tenant_id, user_id, namespace, visibility);
