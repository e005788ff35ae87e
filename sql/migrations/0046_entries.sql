-- Entries: memories that people and tools write and read over the API, filed under their own namespace, a team or a project.
-- text is what recall shows: title and content, cleaned, with secrets masked. content: exactly what was sent; NULL where
-- that is the text. title NULL: the first line of the text stands for it. version: grows with every change.
-- trashed_at: in no index since then, and erased 30 days later unless it was restored.
ALTER TABLE memories RENAME COLUMN deleted_at TO trashed_at;
ALTER TABLE memories DROP COLUMN team_id;  -- the namespace says it
ALTER TABLE memories ADD COLUMN title text;
ALTER TABLE memories ADD COLUMN content text;
ALTER TABLE memories ADD COLUMN tags text[] NOT NULL DEFAULT '{}';
ALTER TABLE memories ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}';
ALTER TABLE memories ADD COLUMN session text;
ALTER TABLE memories ADD COLUMN updated_at timestamptz;
ALTER TABLE memories ADD COLUMN version int NOT NULL DEFAULT 1;

-- A key is its writer's own: two tools may use the same one. So it is not unique; writing with a key takes a lock.
DROP INDEX memories_by_key;
CREATE INDEX memories_by_key ON memories (tenant_id, user_id, key) WHERE key IS NOT NULL;
-- Lists are read newest first, one namespace at a time.
DROP INDEX memories_by_namespace;
CREATE INDEX memories_by_namespace ON memories (tenant_id, namespace, created_at DESC, id DESC);

-- entry: what else an entry has that waits for approval, as JSON; NULL for what is no entry, and once it was decided.
ALTER TABLE quarantine ADD COLUMN entry jsonb;

ALTER TABLE teams ADD COLUMN created_by uuid;
ALTER TABLE team_members ADD COLUMN role text NOT NULL DEFAULT 'member' CHECK (role IN ('member', 'admin'));
ALTER TABLE team_members ADD COLUMN joined_at timestamptz NOT NULL DEFAULT now();
ALTER TABLE team_members ALTER COLUMN joined_at DROP DEFAULT;
ALTER TABLE team_members ALTER COLUMN role DROP DEFAULT;
CREATE INDEX team_members_by_user ON team_members (tenant_id, user_id);

CREATE TABLE team_invites (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    team_id uuid NOT NULL,
    user_id uuid NOT NULL,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, team_id) REFERENCES teams ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX team_invites_by_user ON team_invites (tenant_id, user_id);
CREATE UNIQUE INDEX team_invites_once ON team_invites (tenant_id, team_id, user_id);

ALTER TABLE team_invites ENABLE ROW LEVEL SECURITY;
ALTER TABLE team_invites FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON team_invites USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON team_invites TO nexus_service;
GRANT INSERT ON teams TO nexus_service;
GRANT INSERT, UPDATE, DELETE ON team_members TO nexus_service;

-- As before, but whoever is in a team, is invited to one or has invited somebody is a person whom something else uses.
CREATE OR REPLACE FUNCTION delete_unused_of_import(run uuid, OUT conversations bigint, OUT people bigint) LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
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
          AND NOT EXISTS (SELECT FROM team_members AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM team_invites AS i
                          WHERE i.tenant_id = tenant AND (i.user_id = u.id OR i.created_by = u.id))
          AND NOT EXISTS (SELECT FROM public.conversations AS c WHERE c.tenant_id = tenant AND c.user_id = u.id)
          AND NOT EXISTS (SELECT FROM reminders AS r WHERE r.tenant_id = tenant AND r.user_id = u.id)
          AND NOT EXISTS (SELECT FROM memories AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM facts AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM landmarks AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM quarantine AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM api_keys AS k WHERE k.tenant_id = tenant AND k.user_id = u.id)
          AND NOT EXISTS (SELECT FROM web_sessions AS w WHERE w.tenant_id = tenant AND w.user_id = u.id)
          AND NOT EXISTS (SELECT FROM login_links AS l WHERE l.tenant_id = tenant AND l.user_id = u.id);
    GET DIAGNOSTICS people = ROW_COUNT;
END;
$$;
