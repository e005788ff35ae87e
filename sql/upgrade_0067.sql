-- Bring a database that stands at migration 0067 (schema_0067.sql) to the baseline (schema.sql, of which it includes the
-- paragraphs of new tables and functions, by their names): run once, in the transaction that records the baseline in its
-- ledger. The owner may be bound by row-level security, which is therefore not forced until the end.
DO $$
DECLARE
    name regclass;
BEGIN
    FOR name IN SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relforcerowsecurity
    LOOP
        EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', name);
    END LOOP;
END
$$;

-- Projects invite as teams do.
ALTER TABLE team_invites RENAME TO invites;
ALTER TABLE invites RENAME CONSTRAINT team_invites_pkey TO invites_pkey;
ALTER TABLE invites RENAME CONSTRAINT team_invites_tenant_id_team_id_fkey TO invites_tenant_id_team_id_fkey;
ALTER TABLE invites RENAME CONSTRAINT team_invites_tenant_id_user_id_fkey TO invites_tenant_id_user_id_fkey;
ALTER INDEX team_invites_by_user RENAME TO invites_by_user;
ALTER TABLE invites ALTER COLUMN team_id DROP NOT NULL;
ALTER TABLE invites ADD COLUMN project_id uuid;
ALTER TABLE invites ADD COLUMN role text CHECK (role IN ('read', 'write', 'admin'));
ALTER TABLE invites ADD COLUMN raised boolean NOT NULL DEFAULT false;
ALTER TABLE invites ADD COLUMN declined boolean NOT NULL DEFAULT false;
ALTER TABLE invites ADD FOREIGN KEY (tenant_id, project_id) REFERENCES projects ON DELETE CASCADE;
ALTER TABLE invites ADD CONSTRAINT invites_to_one
    CHECK (num_nonnulls(team_id, project_id) = 1 AND (project_id IS NULL) = (role IS NULL));
DROP INDEX team_invites_once;
CREATE UNIQUE INDEX invites_once ON invites (tenant_id, team_id, project_id, user_id) NULLS NOT DISTINCT;

-- Since PostgreSQL 18 the NOT NULL of a column has a name, and that of a renamed column keeps the one before.
DO $$
DECLARE
    old record;
BEGIN
    FOR old IN
        SELECT k.conrelid::regclass AS owner, k.conname AS name, c.relname || '_' || a.attname || '_not_null' AS new_name
        FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid
        JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
        WHERE k.contype = 'n' AND k.connamespace = 'public'::regnamespace
              AND k.conname <> c.relname || '_' || a.attname || '_not_null'
    LOOP
        EXECUTE format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', old.owner, old.name, old.new_name);
    END LOOP;
END
$$;

-- Interrupted commands are not done late any more.
DROP TABLE changes;

-- Who is in a private room is asked of its platform.
DROP FUNCTION rooms_with_certain_members(uuid);
DROP TABLE membership_readings;
DROP TABLE connections;

-- Transactions lock the row of their tenant (tenant_serialize), which takes the right to change some column of it.
GRANT UPDATE (created_at) ON tenants TO nexus_service;
-- The receipt of a long erasure grows with each portion of it.
GRANT UPDATE (counts, digests) ON receipts TO nexus_service;

-- Attempts to learn are counted for conversations and for the gateway alike. Those of before are made anew.
DROP TABLE extraction_batches;
{{learning_batches}}
GRANT SELECT, INSERT, UPDATE, DELETE ON learning_batches TO nexus_service;
ALTER TABLE gateway_exchanges DROP COLUMN claim, DROP COLUMN claimed_until, DROP COLUMN due_at, DROP COLUMN attempts,
    DROP COLUMN answer;

-- What is learnt together is of one author.
ALTER TABLE extraction_queue ADD COLUMN user_id uuid;
UPDATE extraction_queue AS q SET user_id = m.user_id FROM messages AS m WHERE m.tenant_id = q.tenant_id AND m.id = q.message_id;
DELETE FROM extraction_queue WHERE user_id IS NULL;
ALTER TABLE extraction_queue ALTER COLUMN user_id SET NOT NULL;
DROP INDEX extraction_queue_by_scope;
CREATE INDEX extraction_queue_by_scope ON extraction_queue (tenant_id, conversation_id, namespace, visibility, user_id);

-- How far a channel was read: until its last message, unless messages are missing since a time before that.
DROP INDEX conversations_by_platform;
ALTER TABLE conversations RENAME COLUMN seen_at TO read_to;
UPDATE conversations AS c SET read_to = w.history_unread_since FROM workspaces AS w
WHERE w.tenant_id = c.tenant_id AND w.platform = c.platform AND w.workspace = c.workspace AND w.history_unread_since < c.read_to;
ALTER TABLE conversations DROP COLUMN seen_id;
DROP TABLE workspaces;

-- Commands, and writes over the API, are recorded alike.
{{requests}}
INSERT INTO requests
SELECT tenant_id, 'command', sha256(id::text::bytea), sha256(''), NULL,
       CASE WHEN done THEN id END, received_at, received_at + interval '30 days', process,
       jsonb_set(call, '{at}', to_jsonb(adapter || ' ' || workspace))
FROM commands;
INSERT INTO requests
SELECT tenant_id, credential, key_digest, digest, user_id, made, created_at, created_at + interval '1 day', NULL, NULL
FROM api_requests;
DROP TABLE commands, api_requests;
GRANT SELECT, INSERT, UPDATE, DELETE ON requests TO nexus_service;

-- An answer has the sources that it is made of. For those of before, these are all that was recalled for them, with the
-- memories, facts and landmarks of their prompts.
INSERT INTO lineage (tenant_id, item_kind, item_id, source_kind, source_id)
SELECT l.tenant_id, 'answer', t.reply_id, l.source_kind, l.source_id
FROM turns AS t JOIN lineage AS l ON l.tenant_id = t.tenant_id AND l.item_kind = 'turn' AND l.item_id = t.id
WHERE t.reply_id IS NOT NULL AND l.source_kind IN ('episode', 'memory', 'fact', 'landmark', 'summary')
ON CONFLICT DO NOTHING;

-- The ledger begins anew with the baseline.
DELETE FROM schema_migrations;

-- Turns and files that are read belong to no process: who works on them holds a lock.
ALTER TABLE turns DROP COLUMN claimed_by, ADD COLUMN rating smallint CHECK (rating IN (-1, 1));
CREATE INDEX turns_rated ON turns (tenant_id, rating) WHERE rating IS NOT NULL;
{{unread_files}}
INSERT INTO unread_files SELECT tenant_id, message_id, adapter, tries FROM voice_notes;
DROP TABLE voice_notes;
GRANT SELECT, INSERT, UPDATE, DELETE ON unread_files TO nexus_service;
DROP INDEX turns_open;
CREATE INDEX turns_open ON turns (tenant_id, conversation_id, queued_at) WHERE state <> 'sent';
{{process_lock}}
{{tenants_with_open_work}}
CREATE POLICY owner ON turns FOR SELECT TO CURRENT_USER USING (true);
CREATE POLICY owner ON unread_files FOR SELECT TO CURRENT_USER USING (true);

-- Recall finds the passages of long texts. Long messages are indexed again; a memory that was stored before stays in one piece.
{{message_words}}
ALTER TABLE recall_terms DROP CONSTRAINT recall_terms_tenant_id_item_id_fkey;
ALTER TABLE reembedded DROP CONSTRAINT reembedded_tenant_id_id_fkey;
ALTER TABLE reembedded DROP CONSTRAINT reembedded_pkey;
ALTER TABLE recall_index DROP CONSTRAINT recall_index_pkey;
ALTER TABLE recall_index ADD COLUMN part smallint NOT NULL DEFAULT 1, ADD COLUMN start int NOT NULL DEFAULT 0, ADD COLUMN chars int;
ALTER TABLE recall_terms ADD COLUMN part smallint NOT NULL DEFAULT 1;
ALTER TABLE reembedded ADD COLUMN part smallint NOT NULL DEFAULT 1;
ALTER TABLE recall_index ADD PRIMARY KEY (tenant_id, id, part);
ALTER TABLE recall_terms ADD FOREIGN KEY (tenant_id, item_id, part) REFERENCES recall_index ON DELETE CASCADE;
ALTER TABLE reembedded ADD PRIMARY KEY (tenant_id, id, part);
ALTER TABLE reembedded ADD FOREIGN KEY (tenant_id, id, part) REFERENCES recall_index ON DELETE CASCADE;
DROP INDEX recall_index_scan;
CREATE INDEX recall_index_scan ON recall_index (tenant_id, namespace)
    INCLUDE (id, part, visibility, user_id, vendors, at, expires_at, length, signature, magnitude);
DROP INDEX recall_index_to_embed;
CREATE INDEX recall_index_to_embed ON recall_index (tenant_id, at, id, part) WHERE embedding IS NULL;
DROP INDEX recall_terms_by_item;
CREATE INDEX recall_terms_by_item ON recall_terms (tenant_id, item_id, part);
DROP INDEX recall_terms_scan;
CREATE INDEX recall_terms_scan ON recall_terms (tenant_id, namespace, term)
    INCLUDE (item_id, part, tf, length, visibility, user_id, vendors, at, expires_at);
WITH long AS (
    UPDATE messages SET indexed = false
    WHERE indexed AND agent_id IS NULL AND octet_length(message_words(text, attachments)) > 1200
    RETURNING tenant_id, id
)
DELETE FROM recall_index AS r USING episodes AS e, long
WHERE e.tenant_id = long.tenant_id AND e.message_id = long.id AND r.tenant_id = e.tenant_id AND r.id = e.id;

-- In the threads of a room, what follows up an answer needs no mention, unless its admins say otherwise.
ALTER TABLE conversations ADD COLUMN follow_ups boolean NOT NULL DEFAULT true;
ALTER TABLE conversations ADD COLUMN read_failed_at timestamptz;

-- A person's own time zone: as their platform says it, and as they set it.
ALTER TABLE identities ADD COLUMN timezone text;
GRANT UPDATE (timezone) ON identities TO nexus_service;

-- Codes that work once are kept in one table. Those of before work no more: they lasted for minutes.
DROP TABLE app_codes;
DROP TABLE link_codes;
DROP TABLE login_links;
{{one_time_codes}}
GRANT SELECT, INSERT, UPDATE, DELETE ON one_time_codes TO nexus_service;
DROP FUNCTION delete_unused_of_import;
{{delete_unused_of_import}}

-- When somebody last forgot something is said of them.
ALTER TABLE users ADD COLUMN forgot_at timestamptz;
UPDATE users AS u SET forgot_at = f.forgot_at FROM gateway_forgets AS f WHERE f.tenant_id = u.tenant_id AND f.user_id = u.id;
DROP TABLE gateway_forgets;

-- What people have set for themselves, and the digests of rooms, are said of them too.
ALTER TABLE users ADD COLUMN settings jsonb, ADD COLUMN settings_at timestamptz, ADD CHECK ((settings IS NULL) = (settings_at IS NULL));
-- Admins disable people.
ALTER TABLE users ADD COLUMN disabled_at timestamptz;
UPDATE users AS u
SET settings_at = p.changed_at,
    settings = jsonb_build_object('recall', p.recall, 'strategy', p.strategy, 'budget', p.budget, 'trash_days', p.trash_days,
                                  'keep_days', p.keep_days, 'timezone', NULL)
FROM personal_settings AS p WHERE p.tenant_id = u.tenant_id AND p.user_id = u.id;
DROP TABLE personal_settings;
ALTER TABLE conversations ADD COLUMN digest_period text CHECK (digest_period IN ('daily', 'weekly')),
    ADD COLUMN digest_hour int CHECK ((digest_hour >= 0) AND (digest_hour <= 23)), ADD COLUMN digest_due_at timestamptz;
CREATE INDEX conversations_digests_due ON conversations (tenant_id, digest_due_at) WHERE digest_due_at IS NOT NULL;
UPDATE conversations AS c SET digest_period = d.period, digest_hour = d.hour, digest_due_at = d.due_at
FROM digests AS d WHERE d.tenant_id = c.tenant_id AND d.conversation_id = c.id;
DROP TABLE digests;

-- A session is pooled by the project that its person has put it into, until they leave it: then it leaves the project with
-- their DMs, or is pooled no more where that is isolated.
UPDATE conversations AS c SET project_id = CASE WHEN belongs.member OR belongs.isolated THEN c.project_id END,
    pooled = c.kind = 'session' AND belongs.member
FROM (SELECT o.tenant_id, o.id, p.isolated, EXISTS (
          SELECT FROM project_members AS m JOIN users AS u ON u.tenant_id = m.tenant_id AND u.id = m.user_id
          WHERE m.tenant_id = o.tenant_id AND m.project_id = p.id
                AND coalesce(u.person_id, u.id) = coalesce(w.person_id, w.id)) AS member
      FROM conversations AS o JOIN projects AS p ON p.tenant_id = o.tenant_id AND p.id = o.project_id
      JOIN users AS w ON w.tenant_id = o.tenant_id AND w.id = o.user_id
      WHERE o.kind IN ('dm', 'session')) AS belongs
WHERE c.tenant_id = belongs.tenant_id AND c.id = belongs.id;

-- What was changed of an entry, without its words.
ALTER TABLE memories ADD COLUMN history jsonb NOT NULL DEFAULT '[]';
CREATE FUNCTION with_version(history jsonb, version int, at timestamptz, by text, changed text[]) RETURNS jsonb
    LANGUAGE sql STABLE RETURN CASE WHEN jsonb_array_length(history) < 50 THEN history ELSE history - 0 END
        || jsonb_build_object('version', version, 'at', at, 'by', by, 'changed', changed);

{{holds_words}}

-- The planner's statistics are samples of what columns hold, and outlive the rows: of such columns none are taken, and those
-- that were are cleared.
DO $$
DECLARE
    words record;
BEGIN
    FOR words IN
        SELECT c.relname AS owner, a.attname AS name
        FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND holds_words(a.attname, a.atttypid)
              AND EXISTS (SELECT FROM pg_attribute AS t WHERE t.attrelid = c.oid AND t.attname = 'tenant_id')
    LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET STATISTICS 0', words.owner, words.name);
        PERFORM pg_clear_attribute_stats('public', words.owner, words.name, false);
    END LOOP;
END
$$;

{{note_changed}}

-- What an admin has uploaded is told from what whoever runs Nexus has imported.
ALTER TABLE imports ADD COLUMN uploaded_by uuid;

-- The latest of somebody's memories are read without the others, and a decision that stands as a memory and a landmark is
-- found by its place.
CREATE INDEX memories_by_user_at ON memories (tenant_id, user_id, created_at DESC, id DESC);
CREATE INDEX memories_decisions ON memories (tenant_id, user_id, namespace) WHERE kind = 'decision';

-- Row-level security is forced on every table with a tenant_id again, and new ones have it too.
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'tenants'
    LOOP
        IF NOT EXISTS (SELECT FROM pg_policies WHERE schemaname = 'public' AND tablename = name AND policyname = 'tenant') THEN
            EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
            EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = current_tenant())', name);
        END IF;
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
    END LOOP;
END
$$;
