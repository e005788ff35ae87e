-- Rename columns, tables and indexes to the terms that the code uses. No row changes its meaning.
-- namespace: the compartment that a row is filed under (was run_id). ephemeral: stored for one answer, then erased (was
-- passing). adapter: what connects a platform to the core (was door). recording: the room's recording policy (was memory).
DO $$
DECLARE
    each text;
BEGIN
    FOREACH each IN ARRAY ARRAY['compactions', 'conversations', 'extraction_batches', 'extraction_queue', 'facts', 'landmarks',
                                'memories', 'messages', 'recall_index', 'recall_terms', 'summaries', 'summaries_due']
    LOOP
        EXECUTE format('ALTER TABLE %I RENAME COLUMN run_id TO namespace', each);
    END LOOP;
END
$$;
ALTER TABLE messages RENAME COLUMN passing TO ephemeral;
ALTER TABLE turns RENAME COLUMN door TO adapter;
ALTER TABLE commands_run RENAME COLUMN door TO adapter;
ALTER TABLE commands_run RENAME TO commands;
ALTER TABLE commands RENAME COLUMN run_at TO received_at;
ALTER TABLE compactions RENAME COLUMN asked TO requested;
ALTER TABLE conversations RENAME COLUMN memory TO recording;
ALTER TABLE job_runs RENAME COLUMN said TO note;
ALTER TABLE withdrawals RENAME TO retractions;

ALTER INDEX landmarks_by_run RENAME TO landmarks_by_namespace;
ALTER INDEX memories_by_run RENAME TO memories_by_namespace;
ALTER INDEX memories_standing RENAME TO memories_extracted;
ALTER INDEX messages_passing RENAME TO messages_ephemeral;
ALTER INDEX summaries_by_run RENAME TO summaries_by_namespace;
ALTER INDEX commands_run_pkey RENAME TO commands_pkey;
ALTER INDEX withdrawals_pkey RENAME TO retractions_pkey;
ALTER TABLE conversations RENAME CONSTRAINT conversations_memory_check TO conversations_recording_check;

-- The parameters of a function can't be renamed in place. The body is the one of 0001.
DROP FUNCTION may_read(text, text, uuid, text[], text[], text[], uuid[], text);
CREATE FUNCTION may_read(
    namespace text, visibility text, user_id uuid, vendors text[],
    pooled text[], visibilities text[], readers uuid[], vendor text
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    (vendors IS NULL OR vendors && ARRAY['*', vendor])
    AND (visibility = ANY (visibilities) OR (visibility = 'private' AND user_id = ANY (readers))
         OR namespace = ANY (pooled)); -- last, since it is the most expensive

-- The bodies of the triggers name the columns as text, so a renamed column does not reach them.
CREATE OR REPLACE FUNCTION note_summaries_due() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO summaries_due (tenant_id, tier, conversation_id, namespace, quarter)
    SELECT DISTINCT c.tenant_id, t.tier, CASE WHEN t.tier = 'day' THEN coalesce(c.room_id, c.id) ELSE c.id END, m.namespace,
           date_bin('15 minutes', m.at, '2000-01-01 00:00:00Z')
    FROM changed AS m
    JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id
    CROSS JOIN LATERAL unnest(CASE WHEN c.kind = 'thread' THEN ARRAY['thread', 'day'] ELSE ARRAY['session', 'day'] END) AS t (tier)
    WHERE NOT m.ephemeral AND m.agent_id IS NULL
    ORDER BY 1, 2, 3, 4, 5
    ON CONFLICT (tenant_id, tier, conversation_id, namespace, quarter) DO UPDATE SET quarter = excluded.quarter;
    RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION note_edited() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO summaries_due (tenant_id, tier, conversation_id, namespace, quarter)
    SELECT c.tenant_id, t.tier, CASE WHEN t.tier = 'day' THEN coalesce(c.room_id, c.id) ELSE c.id END, NEW.namespace,
           date_bin('15 minutes', NEW.at, '2000-01-01 00:00:00Z')
    FROM conversations AS c
    CROSS JOIN LATERAL unnest(CASE WHEN c.kind = 'thread' THEN ARRAY['thread', 'day'] ELSE ARRAY['session', 'day'] END) AS t (tier)
    WHERE c.tenant_id = NEW.tenant_id AND c.id = NEW.conversation_id
    ON CONFLICT (tenant_id, tier, conversation_id, namespace, quarter) DO UPDATE SET quarter = excluded.quarter;
    RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION note_opted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO summaries_due (tenant_id, tier, conversation_id, namespace, quarter)
    SELECT DISTINCT c.tenant_id, t.tier, CASE WHEN t.tier = 'day' THEN coalesce(c.room_id, c.id) ELSE c.id END, m.namespace,
           date_bin('15 minutes', m.at, '2000-01-01 00:00:00Z')
    FROM messages AS m
    JOIN conversations AS c ON c.tenant_id = m.tenant_id AND c.id = m.conversation_id
    CROSS JOIN LATERAL unnest(CASE WHEN c.kind = 'thread' THEN ARRAY['thread', 'day'] ELSE ARRAY['session', 'day'] END) AS t (tier)
    WHERE m.tenant_id = NEW.tenant_id AND m.user_id = NEW.id AND m.agent_id IS NULL AND NOT m.ephemeral
    ON CONFLICT (tenant_id, tier, conversation_id, namespace, quarter) DO UPDATE SET quarter = excluded.quarter;
    RETURN NULL;
END
$$;

-- Stored prompts and commands name the same things as JSON keys. A quote inside a JSON string is escaped, so what people
-- wrote can't match. The migrating user may be bound by row-level security, so each tenant is updated by itself.
DO $$
DECLARE
    each uuid;
BEGIN
    FOR each IN SELECT tenant_id FROM tenants
    LOOP
        PERFORM set_config('nexus.tenant', each::text, true);
        UPDATE turns
        SET prompt = replace(replace(replace(prompt::text, '"run_id": ', '"namespace": '), '"among": ', '"candidates": '),
                             '"asked": ', '"requested": ')::jsonb
        WHERE tenant_id = each AND prompt IS NOT NULL;
        UPDATE commands
        SET call = jsonb_set(call, '{incoming}',
                             (call -> 'incoming') - ARRAY['door', 'asks', 'by_admin'] || jsonb_build_object(
                                 'adapter', call #> '{incoming,door}', 'addressed_agents', call #> '{incoming,asks}',
                                 'sender_is_admin', call #> '{incoming,by_admin}'))
        WHERE tenant_id = each AND call IS NOT NULL;
    END LOOP;
    PERFORM set_config('nexus.tenant', '', true);
END
$$;
