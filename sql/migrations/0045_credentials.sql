-- What opens a person's memory from outside a chat. Of each secret only its SHA-256 is stored (of 32 random bytes, so
-- nothing can be guessed from it).
-- api_keys: of a person (vendor NULL) or of one of their AI tools. A key that was revoked stays for a while, to be
-- shown. prefix: the beginning of its text, by which people tell keys apart. created_by NULL: whoever runs Nexus.
CREATE TABLE api_keys (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    vendor text,
    name text NOT NULL,
    prefix text NOT NULL,
    digest bytea NOT NULL,
    permissions text[] NOT NULL,
    created_at timestamptz NOT NULL,
    created_by uuid,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, digest),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX api_keys_by_user ON api_keys (tenant_id, user_id, created_at);

-- A signed-in browser. browser: what it calls itself.
CREATE TABLE web_sessions (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    digest bytea NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    last_used_at timestamptz,
    browser text NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, digest),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX web_sessions_by_user ON web_sessions (tenant_id, user_id, created_at);

-- A link that signs a person in, once: its row is deleted then. A person has one at most.
CREATE TABLE login_links (
    tenant_id uuid NOT NULL,
    user_id uuid NOT NULL,
    digest bytea NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, user_id),
    UNIQUE (tenant_id, digest),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id) ON DELETE CASCADE
);

ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON api_keys USING (tenant_id = current_tenant());
ALTER TABLE web_sessions ENABLE ROW LEVEL SECURITY;
ALTER TABLE web_sessions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON web_sessions USING (tenant_id = current_tenant());
ALTER TABLE login_links ENABLE ROW LEVEL SECURITY;
ALTER TABLE login_links FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON login_links USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON api_keys, web_sessions, login_links TO nexus_service;

-- As before, but whoever has a key, a web session or a login link is a person whom something else than the import uses.
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
