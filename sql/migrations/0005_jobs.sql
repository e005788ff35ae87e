-- What runs behind the talk: which summaries are due, what the schedule has done, what was used, and how it is kept.

-- A quarter of an hour of a conversation's run whose words have changed since a tier last looked: said, edited, erased,
-- or said by someone who has opted out or in. Written by triggers, so that nothing that changes the log can forget to.
-- Every zone's days begin on such a quarter. `tier` is who has to look: thread, session, day; week has the day's begin.
CREATE TABLE summaries_due (
    tenant_id uuid NOT NULL,
    tier text NOT NULL CHECK (tier IN ('thread', 'session', 'day', 'week')),
    conversation_id uuid NOT NULL,
    run_id text NOT NULL,
    quarter timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, tier, conversation_id, run_id, quarter),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations ON DELETE CASCADE
);
CREATE INDEX conversations_by_room ON conversations (tenant_id, room_id) WHERE room_id IS NOT NULL;

-- A mark that is there is set again (DO UPDATE), and so locked: who clears it waits for the words that set it.
-- A room's day is that of the room with its threads; a thread's own summary is the thread tier's.
CREATE FUNCTION note_summaries_due() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO summaries_due (tenant_id, tier, conversation_id, run_id, quarter)
    SELECT DISTINCT c.tenant_id, t.tier, CASE WHEN t.tier = 'day' THEN coalesce(c.room_id, c.id) ELSE c.id END, m.run_id,
           date_bin('15 minutes', m.at, '2000-01-01 00:00:00Z')
    FROM changed AS m
    JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id
    CROSS JOIN LATERAL unnest(CASE WHEN c.kind = 'thread' THEN ARRAY['thread', 'day'] ELSE ARRAY['session', 'day'] END) AS t (tier)
    WHERE NOT m.passing AND m.agent_id IS NULL
    ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (tenant_id, tier, conversation_id, run_id, quarter) DO UPDATE SET quarter = excluded.quarter;
    RETURN NULL;
END
$$;
CREATE TRIGGER messages_said AFTER INSERT ON messages
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_summaries_due();
CREATE TRIGGER messages_erased AFTER DELETE ON messages
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_summaries_due();

-- For each row, and only where the words were set: that a message was indexed changes no summary.
CREATE FUNCTION note_edited() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO summaries_due (tenant_id, tier, conversation_id, run_id, quarter)
    SELECT c.tenant_id, t.tier, CASE WHEN t.tier = 'day' THEN coalesce(c.room_id, c.id) ELSE c.id END, NEW.run_id,
           date_bin('15 minutes', NEW.at, '2000-01-01 00:00:00Z')
    FROM conversations AS c
    CROSS JOIN LATERAL unnest(CASE WHEN c.kind = 'thread' THEN ARRAY['thread', 'day'] ELSE ARRAY['session', 'day'] END) AS t (tier)
    WHERE c.tenant_id = NEW.tenant_id AND c.id = NEW.conversation_id
    ON CONFLICT (tenant_id, tier, conversation_id, run_id, quarter) DO UPDATE SET quarter = excluded.quarter;
    RETURN NULL;
END
$$;
CREATE TRIGGER messages_edited AFTER UPDATE OF text ON messages FOR EACH ROW
    WHEN (OLD.text IS DISTINCT FROM NEW.text AND NEW.agent_id IS NULL AND NOT NEW.passing) EXECUTE FUNCTION note_edited();

-- Who opts out is in no summary any more; who opts in again is.
CREATE FUNCTION note_opted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO summaries_due (tenant_id, tier, conversation_id, run_id, quarter)
    SELECT DISTINCT c.tenant_id, t.tier, CASE WHEN t.tier = 'day' THEN coalesce(c.room_id, c.id) ELSE c.id END, m.run_id,
           date_bin('15 minutes', m.at, '2000-01-01 00:00:00Z')
    FROM messages AS m
    JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id
    CROSS JOIN LATERAL unnest(CASE WHEN c.kind = 'thread' THEN ARRAY['thread', 'day'] ELSE ARRAY['session', 'day'] END) AS t (tier)
    WHERE m.tenant_id = NEW.tenant_id AND m.user_id = NEW.id AND m.agent_id IS NULL AND NOT m.passing
    ON CONFLICT (tenant_id, tier, conversation_id, run_id, quarter) DO UPDATE SET quarter = excluded.quarter;
    RETURN NULL;
END
$$;
CREATE TRIGGER users_opted AFTER UPDATE OF opted_out ON users FOR EACH ROW
    WHEN (OLD.opted_out IS DISTINCT FROM NEW.opted_out) EXECUTE FUNCTION note_opted();

-- What was said before there were any triggers. The migrating user is bound by row-level security too, so tenant by tenant.
DO $$
DECLARE
    tenant uuid;
BEGIN
    FOR tenant IN SELECT tenant_id FROM tenants LOOP
        PERFORM set_config('nexus.tenant', tenant::text, true);
        INSERT INTO summaries_due (tenant_id, tier, conversation_id, run_id, quarter)
        SELECT DISTINCT c.tenant_id, t.tier, CASE WHEN t.tier = 'day' THEN coalesce(c.room_id, c.id) ELSE c.id END, m.run_id,
               date_bin('15 minutes', m.at, '2000-01-01 00:00:00Z')
        FROM messages AS m
        JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id
        CROSS JOIN LATERAL unnest(CASE WHEN c.kind = 'thread' THEN ARRAY['thread', 'day'] ELSE ARRAY['session', 'day'] END) AS t (tier)
        WHERE m.tenant_id = tenant AND NOT m.passing AND m.agent_id IS NULL
        ON CONFLICT DO NOTHING;
    END LOOP;
    PERFORM set_config('nexus.tenant', '', true);
END
$$;

-- What the schedule has done. `slot` is the moment that a run stands for; it is of the installation, and holds figures only.
CREATE TABLE job_runs (
    name text NOT NULL,
    slot timestamptz NOT NULL,
    state text NOT NULL CHECK (state IN ('running', 'done', 'failed', 'late')),
    attempts int NOT NULL DEFAULT 1,
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    done bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    said text NOT NULL DEFAULT '',
    PRIMARY KEY (name, slot)
);

-- What was used, by day (UTC), agent and model.
CREATE TABLE usage_days (
    tenant_id uuid NOT NULL REFERENCES tenants,
    day date NOT NULL,
    agent_id uuid NOT NULL,
    model text NOT NULL,
    turns bigint NOT NULL,
    failures bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    PRIMARY KEY (tenant_id, day, agent_id, model)
);
CREATE INDEX turns_by_answer ON turns (tenant_id, answered_at) WHERE answered_at IS NOT NULL;
CREATE INDEX memories_to_purge ON memories (tenant_id, deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX memories_to_expire ON memories (tenant_id, expires_at) WHERE expires_at IS NOT NULL;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['summaries_due', 'usage_days']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = current_tenant())', name);
    END LOOP;
END
$$;
GRANT SELECT, INSERT, UPDATE, DELETE ON summaries_due, usage_days, job_runs TO nexus_service;
