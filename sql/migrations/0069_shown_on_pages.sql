-- Open pages are told of changes in more tables: which table, as the last word of a notice.
CREATE OR REPLACE FUNCTION note_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM pg_notify('turns', concat_ws(' ', 'changed', OLD.tenant_id, OLD.visibility, coalesce(OLD.user_id::text, '-'), OLD.namespace, TG_TABLE_NAME));
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM pg_notify('turns', concat_ws(' ', 'changed', NEW.tenant_id, NEW.visibility, coalesce(NEW.user_id::text, '-'), NEW.namespace, TG_TABLE_NAME));
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER summaries_changed AFTER INSERT OR UPDATE OR DELETE ON summaries FOR EACH ROW EXECUTE FUNCTION note_changed();

-- The same for a row that has no access tag. Arguments: the beginning of where it is, the column that continues it, another
-- one for where that is NULL, and the column of whose it is.
CREATE FUNCTION note_shown() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    shown jsonb;
BEGIN
    FOREACH shown IN ARRAY ARRAY[to_jsonb(OLD), to_jsonb(NEW)] LOOP
        CONTINUE WHEN shown IS NULL;
        PERFORM pg_notify('turns', concat_ws(' ', 'changed', coalesce(shown ->> 'tenant_id', '-'), 'shared', coalesce(shown ->> TG_ARGV[3], '-'),
            TG_ARGV[0] || coalesce(shown ->> TG_ARGV[1], shown ->> TG_ARGV[2], '-'), TG_TABLE_NAME));
    END LOOP;
    RETURN NULL;
END
$$;
CREATE TRIGGER teams_shown AFTER INSERT OR UPDATE OR DELETE ON teams FOR EACH ROW EXECUTE FUNCTION note_shown('team:', 'id', '', '');
CREATE TRIGGER team_members_shown AFTER INSERT OR UPDATE OR DELETE ON team_members
    FOR EACH ROW EXECUTE FUNCTION note_shown('team:', 'team_id', '', 'user_id');
CREATE TRIGGER projects_shown AFTER INSERT OR UPDATE OR DELETE ON projects FOR EACH ROW EXECUTE FUNCTION note_shown('project:', 'id', '', '');
CREATE TRIGGER project_members_shown AFTER INSERT OR UPDATE OR DELETE ON project_members
    FOR EACH ROW EXECUTE FUNCTION note_shown('project:', 'project_id', '', 'user_id');
CREATE TRIGGER invites_shown AFTER INSERT OR UPDATE OR DELETE ON invites
    FOR EACH ROW EXECUTE FUNCTION note_shown('invites:', 'team_id', 'project_id', 'user_id');
-- Whoever joins or leaves a room has another list of rooms.
CREATE TRIGGER members_shown AFTER INSERT OR UPDATE OR DELETE ON members
    FOR EACH ROW EXECUTE FUNCTION note_shown('member:', 'conversation_id', '', 'user_id');
CREATE TRIGGER rooms_made AFTER INSERT ON conversations
    FOR EACH ROW WHEN (NEW.kind = 'room') EXECUTE FUNCTION note_shown('', 'namespace', '', '');
CREATE TRIGGER rooms_shown AFTER UPDATE OF namespace, name, title, private, project_id, pooled, recording ON conversations
    FOR EACH ROW WHEN (NEW.kind = 'room' AND (OLD.namespace, OLD.name, OLD.title, OLD.private, OLD.project_id, OLD.pooled, OLD.recording)
        IS DISTINCT FROM (NEW.namespace, NEW.name, NEW.title, NEW.private, NEW.project_id, NEW.pooled, NEW.recording))
    EXECUTE FUNCTION note_shown('', 'namespace', '', '');
CREATE TRIGGER rooms_of_projects_shown AFTER UPDATE OF title, project_id ON conversations
    FOR EACH ROW WHEN (NEW.kind = 'room' AND NOT OLD.private AND NOT NEW.private AND (OLD.title, OLD.project_id) IS DISTINCT FROM (NEW.title, NEW.project_id))
    EXECUTE FUNCTION note_shown('project:', 'project_id', '', '');
CREATE TRIGGER sessions_shown AFTER INSERT OR UPDATE OF last_seq, version, name, title, project_id ON conversations
    FOR EACH ROW WHEN (NEW.kind = 'session') EXECUTE FUNCTION note_shown('', 'namespace', '', 'user_id');
-- What opens a person's memory; not that it was used.
CREATE TRIGGER api_keys_shown AFTER INSERT OR UPDATE OF revoked_at, permissions OR DELETE ON api_keys
    FOR EACH ROW EXECUTE FUNCTION note_shown('opens:', 'user_id', '', 'user_id');
CREATE TRIGGER web_sessions_shown AFTER INSERT OR DELETE ON web_sessions
    FOR EACH ROW EXECUTE FUNCTION note_shown('opens:', 'user_id', '', 'user_id');
CREATE TRIGGER openid_logins_shown AFTER INSERT OR DELETE ON openid_logins
    FOR EACH ROW EXECUTE FUNCTION note_shown('opens:', 'user_id', '', 'user_id');
-- For admins: who is here, who is invited, and which jobs they have started: not at a full minute, as schedules do.
CREATE TRIGGER users_made AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION note_shown('admins:', '', '', '');
CREATE TRIGGER users_shown AFTER UPDATE OF name, admin, disabled_at, opted_out ON users
    FOR EACH ROW WHEN ((OLD.name, OLD.admin, OLD.disabled_at, OLD.opted_out) IS DISTINCT FROM (NEW.name, NEW.admin, NEW.disabled_at, NEW.opted_out))
    EXECUTE FUNCTION note_shown('admins:', '', '', '');
CREATE TRIGGER invitations_shown AFTER INSERT ON one_time_codes
    FOR EACH ROW WHEN (NEW.purpose = 'invite') EXECUTE FUNCTION note_shown('admins:', '', '', '');
CREATE TRIGGER invitations_gone AFTER DELETE ON one_time_codes
    FOR EACH ROW WHEN (OLD.purpose = 'invite') EXECUTE FUNCTION note_shown('admins:', '', '', '');
CREATE TRIGGER job_runs_shown AFTER INSERT OR UPDATE ON job_runs
    FOR EACH ROW WHEN (NEW.due_at <> date_trunc('minute', NEW.due_at)) EXECUTE FUNCTION note_shown('admins:', '', '', '');
