-- Runs of `nexus import`, to be listed and undone. The rows that a run inserts carry its id, by a default that reads the
-- transaction's setting nexus.import; rows that were there before, and what platforms deliver, have none.
-- source: the names of the files. ended_at NULL: interrupted. The row of a run that was undone stays, with undone_at.
CREATE TABLE imports (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    platform text NOT NULL,
    workspace text NOT NULL,
    source text NOT NULL,
    begun_at timestamptz NOT NULL,
    ended_at timestamptz,
    undone_at timestamptz,
    PRIMARY KEY (tenant_id, id, platform, workspace)
);

ALTER TABLE imports ENABLE ROW LEVEL SECURITY;
ALTER TABLE imports FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON imports USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE ON imports TO nexus_service;
GRANT DELETE ON members TO nexus_service;

CREATE FUNCTION current_import() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
RETURN nullif(current_setting('nexus.import', true), '')::uuid;

ALTER TABLE messages ADD COLUMN import_id uuid;
ALTER TABLE messages ALTER COLUMN import_id SET DEFAULT current_import();
CREATE INDEX messages_by_import ON messages (tenant_id, import_id) WHERE import_id IS NOT NULL;
ALTER TABLE conversations ADD COLUMN import_id uuid;
ALTER TABLE conversations ALTER COLUMN import_id SET DEFAULT current_import();
CREATE INDEX conversations_by_import ON conversations (tenant_id, import_id) WHERE import_id IS NOT NULL;
ALTER TABLE users ADD COLUMN import_id uuid;
ALTER TABLE users ALTER COLUMN import_id SET DEFAULT current_import();
CREATE INDEX users_by_import ON users (tenant_id, import_id) WHERE import_id IS NOT NULL;
ALTER TABLE members ADD COLUMN import_id uuid;
ALTER TABLE members ALTER COLUMN import_id SET DEFAULT current_import();
CREATE INDEX members_by_import ON members (tenant_id, import_id) WHERE import_id IS NOT NULL;

-- Deletes, of the conversations and people that an undone run of the present tenant made, those that nothing else has used
-- since. The service may delete no others. Of a room: no message, member, turn, reminder, digest, project, setting, item
-- in its namespace, and no notice of a live adapter; a thread's namespace is its room's. Of a person: no message,
-- membership, conversation, item, reminder, project, link or setting.
CREATE FUNCTION delete_unused_of_import(run uuid, OUT conversations bigint, OUT people bigint) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    tenant uuid := current_tenant();
    gone bigint;
BEGIN
    conversations := 0;
    LOOP  -- threads and then their rooms
        DELETE FROM public.conversations AS c
        WHERE c.tenant_id = tenant AND c.import_id = run AND c.project_id IS NULL AND c.recording = 'on'
              AND c.noticed_at IS NULL AND c.notice_for IS NULL
              AND NOT EXISTS (SELECT FROM public.conversations AS t WHERE t.tenant_id = tenant AND t.room_id = c.id)
              AND NOT EXISTS (SELECT FROM messages AS m WHERE m.tenant_id = tenant AND m.conversation_id = c.id)
              AND NOT EXISTS (SELECT FROM members AS m WHERE m.tenant_id = tenant AND m.conversation_id = c.id)
              AND NOT EXISTS (SELECT FROM turns AS t WHERE t.tenant_id = tenant AND t.conversation_id = c.id)
              AND NOT EXISTS (SELECT FROM reminders AS r WHERE r.tenant_id = tenant AND r.conversation_id = c.id)
              AND NOT EXISTS (SELECT FROM digests AS d WHERE d.tenant_id = tenant AND d.conversation_id = c.id)
              AND (c.kind = 'thread'
                   OR NOT EXISTS (SELECT FROM memories AS i WHERE i.tenant_id = tenant AND i.namespace = c.namespace)
                      AND NOT EXISTS (SELECT FROM facts AS i WHERE i.tenant_id = tenant AND i.namespace = c.namespace)
                      AND NOT EXISTS (SELECT FROM landmarks AS i WHERE i.tenant_id = tenant AND i.namespace = c.namespace)
                      AND NOT EXISTS (SELECT FROM quarantine AS i
                                      WHERE i.tenant_id = tenant AND i.namespace = c.namespace));
        GET DIAGNOSTICS gone = ROW_COUNT;
        EXIT WHEN gone = 0;
        conversations := conversations + gone;
    END LOOP;
    DELETE FROM users AS u
    WHERE u.tenant_id = tenant AND u.import_id = run AND u.person_id IS NULL
          AND NOT u.admin AND NOT u.opted_out AND NOT u.reads_rooms
          AND NOT EXISTS (SELECT FROM messages AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM members AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM project_members AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM public.conversations AS c WHERE c.tenant_id = tenant AND c.user_id = u.id)
          AND NOT EXISTS (SELECT FROM reminders AS r WHERE r.tenant_id = tenant AND r.user_id = u.id)
          AND NOT EXISTS (SELECT FROM memories AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM facts AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM landmarks AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM quarantine AS i WHERE i.tenant_id = tenant AND i.user_id = u.id);
    GET DIAGNOSTICS people = ROW_COUNT;
END;
$$;
REVOKE ALL ON FUNCTION delete_unused_of_import(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION delete_unused_of_import(uuid) TO nexus_service;
