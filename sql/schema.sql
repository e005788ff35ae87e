-- The schema of the database, as Nexus creates it in an empty one (migration 0068, baseline).
--
-- Every table with a tenant_id holds rows of tenants: its keys begin with tenant_id, and row-level security shows a
-- transaction the rows of its own tenant alone, also to the owner of the table. The service logs in as a member of the
-- role nexus_service (composer/stores/database/schema.py creates it), which owns nothing and has the rights at the end of this file.
-- Ids are UUIDs that the service makes. An id of zeros, where a column says so, stands for none.
--
-- A change of the schema before the first release: edit this file, and say the same in upgrade_0067.sql.

CREATE EXTENSION IF NOT EXISTS vector;

-- The tenant of the current transaction; NULL, and so no row at all, where it is not set.
CREATE FUNCTION current_tenant() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('nexus.tenant', true), '')::uuid;

-- The import that the current transaction is part of; NULL: none. Rows that an import inserts have its id by default.
CREATE FUNCTION current_import() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('nexus.import', true), '')::uuid;

-- Whether a row may be read: the rule of composer/visibility.py, and a test compares the two. An unknown namespace,
-- visibility, list or vendor is false, not NULL. A person who reads for themselves, not through a tool, has the vendor '*'.
CREATE FUNCTION may_read(
    namespace text, visibility text, user_id uuid, vendors text[],
    pooled text[], visibilities text[], readers uuid[], vendor text, rooms text[] DEFAULT '{}'
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    coalesce(namespace IS NOT NULL AND visibility IS NOT NULL AND pooled IS NOT NULL AND visibilities IS NOT NULL
             AND readers IS NOT NULL AND vendor IS NOT NULL AND rooms IS NOT NULL
             AND (vendors IS NULL OR vendor = '*' OR vendors && ARRAY['*', vendor])
             AND (visibility = ANY (visibilities)
                  OR (visibility = 'private' AND user_id = ANY (readers) AND namespace <> ALL (rooms))
                  OR namespace = ANY (pooled)
                  OR (visibility IN ('public', 'shared') AND namespace = ANY (rooms))), false); -- the lists last: they cost most

-- The installation -----------------------------------------------------------------------------------------------------

-- The migrations that were applied. checksum: SHA-256 of the file, in hex.
CREATE TABLE schema_migrations (
    version int PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- Values of the whole installation, such as the embedder of its vectors. It holds nothing that a person wrote.
CREATE TABLE deployment (
    key text PRIMARY KEY,
    value jsonb NOT NULL
);

-- The runs of scheduled jobs. due_at: the time that a run is for.
CREATE TABLE job_runs (
    name text NOT NULL,
    due_at timestamptz NOT NULL,
    state text NOT NULL CHECK (state IN ('running', 'done', 'failed', 'late')),
    attempts int NOT NULL DEFAULT 1,
    started_at timestamptz NOT NULL,
    ended_at timestamptz,
    done bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    note text NOT NULL DEFAULT '',
    PRIMARY KEY (name, due_at)
);

-- Apps that have registered themselves. They belong to no tenant: whom they are for is known once somebody has connected
-- one. used_at: when somebody did, or when it last got tokens. An app that nobody connects is deleted after a day.
CREATE TABLE oauth_clients (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    redirect_uris text[] NOT NULL,
    auth_method text NOT NULL CHECK (auth_method IN ('none', 'client_secret_post', 'client_secret_basic')),
    secret_digest bytea,
    created_at timestamptz NOT NULL,
    used_at timestamptz,
    CHECK ((auth_method = 'none') = (secret_digest IS NULL))
);
CREATE INDEX oauth_clients_by_time ON oauth_clients (created_at) WHERE used_at IS NULL;

-- Tenants, by id and slug alone: workers go through this table to find whose work is due.
CREATE TABLE tenants (
    tenant_id uuid PRIMARY KEY,
    slug text NOT NULL UNIQUE,
    created_at timestamptz NOT NULL
);

-- A tenant, its people and its projects --------------------------------------------------------------------------------

-- Settings of a tenant that differ from the defaults.
CREATE TABLE settings (
    tenant_id uuid NOT NULL REFERENCES tenants,
    key text NOT NULL,
    value jsonb NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, key)
);

-- Accounts of people. One person may have several, one on each platform: those with the same person_id (NULL: their own id).
-- reads_rooms: rooms of theirs may be read in their DMs. usage_erasures: how often they were taken out of model_usage, so
-- that a call that began before does not name them again. forgot_at: when they last forgot something, for a week: nothing is
-- learnt from requests to models that were on their way then. settings: what they have set for themselves (composer.model.
-- PersonalSettings, of which the values are checked where they are set), and when; of a person's accounts, the latest counts.
-- disabled_at: since when nothing opens their memory from outside, and nothing can be made that does (NULL: it can).
CREATE TABLE users (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    name text NOT NULL,
    admin boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    person_id uuid,
    opted_out boolean NOT NULL DEFAULT false,
    reads_rooms boolean NOT NULL DEFAULT false,
    usage_erasures bigint NOT NULL DEFAULT 0,
    import_id uuid DEFAULT current_import(),
    forgot_at timestamptz,
    settings jsonb,
    settings_at timestamptz,
    disabled_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    CHECK ((settings IS NULL) = (settings_at IS NULL))
);
CREATE INDEX users_by_import ON users (tenant_id, import_id) WHERE import_id IS NOT NULL;
CREATE INDEX users_by_person ON users (tenant_id, person_id) WHERE person_id IS NOT NULL;

-- Who an account is on a platform. trust, timezone: what the platform said of them last; NULL: nothing yet.
CREATE TABLE identities (
    tenant_id uuid NOT NULL,
    platform text NOT NULL,
    workspace text NOT NULL,
    external_id text NOT NULL,
    user_id uuid NOT NULL,
    trust text CHECK (trust IN ('member', 'guest')),
    trust_stated_at timestamptz,
    timezone text,
    PRIMARY KEY (tenant_id, platform, workspace, external_id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX identities_by_user ON identities (tenant_id, user_id);

CREATE TABLE agents (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, slug)
);

CREATE TABLE teams (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    created_by uuid,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE team_members (
    tenant_id uuid NOT NULL,
    team_id uuid NOT NULL,
    user_id uuid NOT NULL,
    role text NOT NULL CHECK (role IN ('member', 'admin')),
    joined_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, team_id, user_id),
    FOREIGN KEY (tenant_id, team_id) REFERENCES teams ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX team_members_by_user ON team_members (tenant_id, user_id);

CREATE TABLE projects (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    slug text NOT NULL,
    isolated boolean NOT NULL,
    created_by uuid,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX projects_by_slug ON projects (tenant_id, slug);

CREATE TABLE project_members (
    tenant_id uuid NOT NULL,
    project_id uuid NOT NULL,
    user_id uuid NOT NULL,
    role text NOT NULL CHECK (role IN ('read', 'write', 'admin')),
    PRIMARY KEY (tenant_id, project_id, user_id),
    FOREIGN KEY (tenant_id, project_id) REFERENCES projects ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);

-- Who is asked to be a member of a team, or of a project in a role: they are one once they accept.
-- raised: an earlier one, which they may have been shown, offered less. declined: by whom it is for, when it expired.
CREATE TABLE invites (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    team_id uuid,
    user_id uuid NOT NULL,
    created_by uuid NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    project_id uuid,
    role text CHECK (role IN ('read', 'write', 'admin')),
    raised boolean NOT NULL DEFAULT false,
    declined boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT invites_to_one CHECK (num_nonnulls(team_id, project_id) = 1 AND (project_id IS NULL) = (role IS NULL)),
    FOREIGN KEY (tenant_id, team_id) REFERENCES teams ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, project_id) REFERENCES projects ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX invites_by_user ON invites (tenant_id, user_id);
CREATE UNIQUE INDEX invites_once ON invites (tenant_id, team_id, project_id, user_id) NULLS NOT DISTINCT;

-- Conversations and messages -------------------------------------------------------------------------------------------

-- A room, a thread of a room, a DM or a session.
-- namespace: what its messages are stored under. A thread has that of its room; a private room that becomes public gets a new
-- one (generation + 1). version: grows with every change to the messages, so that a cached view is known to be stale.
-- title: what people call it, where name is the platform's id; NULL for threads. recording: which messages are stored.
-- read_to: until when all that was written there was received, or was not to be stored. read_failed_at: when its history could
-- last not be read, until it can. archived_at: when the platform archived it.
-- notice_for, notice_id: after which message the first-use notice is posted, and its id on the platform once it is.
-- privacy_at, outsiders_at: when the platform said so; an older statement changes nothing. private_since: the earliest
-- statement that it is private since it was last opened. later_ids: ids that the platform has given it since, the present one
-- last; id_changed_at: when. history_changed_at: when the platform changed its history at once, until the two are compared.
-- follow_ups: in the threads of a room, what follows up an answer needs no mention.
CREATE TABLE conversations (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('room', 'thread', 'dm', 'session')),
    platform text NOT NULL,
    workspace text NOT NULL,
    name text NOT NULL,
    namespace text NOT NULL,
    generation int NOT NULL DEFAULT 0,
    private boolean NOT NULL DEFAULT false,
    room_id uuid,
    thread text,
    user_id uuid,
    agent_id uuid,
    project_id uuid,
    pooled boolean NOT NULL DEFAULT false,
    last_seq bigint NOT NULL DEFAULT 0,
    version bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    title text,
    recording text NOT NULL DEFAULT 'on' CHECK (recording IN ('on', 'mentions', 'off')),
    noticed_at timestamptz,
    read_to timestamptz,
    archived_at timestamptz,
    notice_for text,
    notice_id text,
    outsiders boolean NOT NULL DEFAULT false,
    privacy_at timestamptz,
    opened_at timestamptz,
    private_since timestamptz,
    outsiders_at timestamptz,
    public_at timestamptz,
    import_id uuid DEFAULT current_import(),
    later_ids text[] NOT NULL DEFAULT '{}',
    history_changed_at timestamptz,
    id_changed_at timestamptz,
    follow_ups boolean NOT NULL DEFAULT true,
    read_failed_at timestamptz,
    digest_period text CHECK (digest_period IN ('daily', 'weekly')),
    digest_hour int CHECK ((digest_hour >= 0) AND (digest_hour <= 23)),
    digest_due_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    CHECK ((kind = 'thread') = (room_id IS NOT NULL)),
    CHECK (kind IN ('dm', 'session') = ((user_id IS NOT NULL) AND (agent_id IS NOT NULL))),
    FOREIGN KEY (tenant_id, project_id) REFERENCES projects ON DELETE SET NULL (project_id),
    FOREIGN KEY (tenant_id, room_id) REFERENCES conversations ON DELETE CASCADE
);
CREATE INDEX conversations_by_import ON conversations (tenant_id, import_id) WHERE import_id IS NOT NULL;
CREATE INDEX conversations_by_name ON conversations (tenant_id, platform, workspace, kind, name);
CREATE INDEX conversations_by_project ON conversations (tenant_id, project_id) WHERE project_id IS NOT NULL;
CREATE INDEX conversations_by_room ON conversations (tenant_id, room_id) WHERE room_id IS NOT NULL;
CREATE INDEX conversations_digests_due ON conversations (tenant_id, digest_due_at) WHERE digest_due_at IS NOT NULL;
CREATE INDEX conversations_sessions_by_user ON conversations (tenant_id, user_id) WHERE kind = 'session';
CREATE INDEX conversations_with_later_ids ON conversations (tenant_id, platform, workspace) WHERE later_ids <> '{}';

-- Who is or was in a conversation. left_at NULL: is.
CREATE TABLE members (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    user_id uuid NOT NULL,
    admin boolean NOT NULL DEFAULT false,
    joined_at timestamptz NOT NULL,
    left_at timestamptz,
    import_id uuid DEFAULT current_import(),
    PRIMARY KEY (tenant_id, conversation_id, user_id),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX members_by_import ON members (tenant_id, import_id) WHERE import_id IS NOT NULL;
CREATE INDEX members_by_user ON members (tenant_id, user_id) WHERE left_at IS NULL;

-- The lock by which a process shows that it works on something: in a conversation, on a turn of a session, on files.
CREATE FUNCTION process_lock(id uuid) RETURNS bigint LANGUAGE sql IMMUTABLE
BEGIN ATOMIC
    SELECT hashtextextended('process ' || id::text, 0);
END;

-- The numbers of the processes that live, and what they work on (process_lock): each holds advisory locks of them.
CREATE FUNCTION live_processes() RETURNS SETOF bigint LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT l.classid::bigint << 32 | l.objid::bigint FROM pg_locks AS l
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database());
END;

-- What was said. seq orders the messages of a conversation. user_id: whose words they are; those of an agent (agent_id) in a DM
-- or a session are that person's, in a room nobody's. ephemeral: stored for its answer alone, then erased.
-- reply_to: the platform's id of the message that it answers. edit_stated_at: the time that the platform gave for the latest edit.
CREATE TABLE messages (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    seq bigint NOT NULL,
    external_id text NOT NULL,
    at timestamptz NOT NULL,
    user_id uuid,
    agent_id uuid,
    author text NOT NULL,
    text text NOT NULL,
    attachments jsonb NOT NULL DEFAULT '[]',
    mentions uuid[] NOT NULL DEFAULT '{}',
    namespace text NOT NULL,
    visibility text NOT NULL CHECK (visibility IN ('public', 'private', 'shared')),
    edited_at timestamptz,
    indexed boolean NOT NULL DEFAULT false,
    ephemeral boolean NOT NULL DEFAULT false,
    reply_to text,
    trust text NOT NULL DEFAULT 'member' CHECK (trust IN ('member', 'guest', 'tool')),
    skipped text,
    import_id uuid DEFAULT current_import(),
    edit_stated_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    CHECK ((user_id IS NOT NULL) OR (agent_id IS NOT NULL)),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations ON DELETE CASCADE
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);
CREATE UNIQUE INDEX messages_by_conversation ON messages (tenant_id, conversation_id, at, seq);
CREATE INDEX messages_by_external_id ON messages (tenant_id, external_id);
CREATE INDEX messages_by_import ON messages (tenant_id, import_id) WHERE import_id IS NOT NULL;
CREATE INDEX messages_by_user ON messages (tenant_id, user_id, id);
CREATE INDEX messages_ephemeral ON messages (tenant_id, id) WHERE ephemeral;
CREATE INDEX messages_skipped ON messages (tenant_id, id) WHERE skipped IS NOT NULL;
CREATE INDEX messages_to_index ON messages (tenant_id, conversation_id, seq) WHERE NOT indexed;

-- Ids of what was erased, so that a repeated event or an import can't bring it back, nor an answer or a summary that is being
-- written meanwhile.
CREATE TABLE erased (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    erased_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

-- Messages whose files are being read as text, and whose voice notes transcribed: the process that does it holds a lock of
-- the message. tries: how many processes began it.
CREATE TABLE unread_files (
    tenant_id uuid NOT NULL,
    message_id uuid NOT NULL,
    adapter text NOT NULL,
    tries smallint NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant_id, message_id),
    FOREIGN KEY (tenant_id, message_id) REFERENCES messages ON DELETE CASCADE
);

-- Imports, to be listed and undone. source: the names of the files. ended_at NULL: interrupted. uploaded_by: the admin who
-- uploaded the file; NULL: whoever runs Nexus imported it.
CREATE TABLE imports (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    platform text NOT NULL,
    workspace text NOT NULL,
    source text NOT NULL,
    begun_at timestamptz NOT NULL,
    ended_at timestamptz,
    undone_at timestamptz,
    uploaded_by uuid,
    PRIMARY KEY (tenant_id, id, platform, workspace)
);

-- Turns, commands and deliveries ---------------------------------------------------------------------------------------

-- Questions to agents and their answers. The process that answers in a conversation holds a lock of it.
-- prompt: what the model was given, until it expires (prompt_expired). Token counts are those of the model's provider, but for
-- counted_tokens (ours) and reused_tokens (at the beginning, equal to the agent's prompt before it in this conversation).
CREATE TABLE turns (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    message_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    adapter text NOT NULL,
    state text NOT NULL CHECK (state IN ('queued', 'answered', 'sent')),
    queued_at timestamptz NOT NULL,
    answered_at timestamptz,
    sent_at timestamptz,
    reply_id uuid,
    failure text,
    model text,
    prompt jsonb,
    timings_ms jsonb,
    counted_tokens int,
    prompt_tokens int,
    completion_tokens int,
    cached_tokens int,
    reused_tokens int,
    prompt_expired boolean NOT NULL DEFAULT false,
    rating smallint CHECK (rating IN (-1, 1)),
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations ON DELETE CASCADE
);
CREATE INDEX turns_by_agent ON turns (tenant_id, conversation_id, agent_id, queued_at DESC) WHERE prompt IS NOT NULL;
CREATE INDEX turns_by_answer ON turns (tenant_id, answered_at) WHERE answered_at IS NOT NULL;
CREATE INDEX turns_by_conversation ON turns (tenant_id, conversation_id, queued_at);
CREATE INDEX turns_by_message ON turns (tenant_id, message_id);
CREATE INDEX turns_open ON turns (tenant_id, conversation_id, queued_at) WHERE state <> 'sent';
CREATE INDEX turns_rated ON turns (tenant_id, rating) WHERE rating IS NOT NULL;
CREATE INDEX turns_with_prompt ON turns (tenant_id, answered_at) WHERE prompt IS NOT NULL;

-- Where each part of an answer is on the platform: a part that is here is not sent again.
CREATE TABLE deliveries (
    tenant_id uuid NOT NULL,
    turn_id uuid NOT NULL,
    part int NOT NULL,
    external_id text NOT NULL,
    sent_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, turn_id, part),
    FOREIGN KEY (tenant_id, turn_id) REFERENCES turns ON DELETE CASCADE
);
CREATE INDEX deliveries_by_external_id ON deliveries (tenant_id, external_id);

-- Parts of answers that are to be deleted on the platform. A row is deleted when the platform has done so; it says where the
-- part is, since the question may be gone by then. part: the part of an answer whose id is not recorded (external_id is ''
-- then) and which is looked for; since: the time before which it can't have been posted.
CREATE TABLE retractions (
    tenant_id uuid NOT NULL,
    platform text NOT NULL,
    workspace text NOT NULL,
    external_id text NOT NULL,
    turn_id uuid NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    thread text,
    private boolean NOT NULL,
    message text NOT NULL,
    user_external_id text,
    part int,
    since timestamptz,
    refused_since timestamptz,
    retry_at timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (tenant_id, platform, workspace, turn_id, external_id)
);

-- Files for one person that were posted in their DM (Slack has no files that one person in a channel sees alone), so that what
-- they forget is deleted there too. due: to be deleted. sharing_until: may not be found on the platform yet; NULL: was shared.
CREATE TABLE posted_files (
    tenant_id uuid NOT NULL,
    platform text NOT NULL,
    workspace text NOT NULL,
    external_id text NOT NULL,
    user_id uuid NOT NULL,
    due boolean NOT NULL DEFAULT false,
    sharing_until timestamptz,
    refused_since timestamptz,
    retry_at timestamptz NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (tenant_id, platform, workspace, external_id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX posted_files_by_user ON posted_files (tenant_id, user_id);
-- Reminders (/nexus remind). When one is due, its text is stored as an agent's message with a turn that is answered already.
-- The row stays, so that forgetting reaches what was posted. namespace: that of the conversation when it was asked for; where
-- it has another one by then, nothing is posted. repeats: see composer/text/when.py; NULL: once.
-- refused: the platform refused the post for good, and the person has not been told yet.
CREATE TABLE reminders (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    namespace text NOT NULL,
    visibility text NOT NULL CHECK (visibility IN ('public', 'private')),
    author text NOT NULL,
    text text NOT NULL,
    made_at timestamptz NOT NULL,
    due_at timestamptz NOT NULL,
    repeats text,
    posted_at timestamptz,
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'refused', 'ended')),
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX reminders_by_user ON reminders (tenant_id, user_id, id);
CREATE INDEX reminders_due ON reminders (tenant_id, due_at) WHERE state = 'open';
CREATE INDEX reminders_refused ON reminders (tenant_id, due_at) WHERE state = 'refused';

-- Memory ---------------------------------------------------------------------------------------------------------------

-- Memories, and entries: memories that people and tools write over the API under a namespace of their own, a team or a project.
-- text: what recall shows, with secrets masked. content: exactly what was sent; NULL: the text. title NULL: the first line.
-- key: its writer's name for it; two tools may use the same one. said_at: when all that an entry says was written; NULL: when it
-- was made. superseded_by, valid_to: a newer memory replaced it, and until when it held. merged_into: says the same in other
-- words. trashed_at: in no index since then, and erased later unless it is restored. history: of each of the latest versions of
-- an entry after the first when and by whom it was made, and which of its fields changed, never what they said.
CREATE TABLE memories (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    namespace text NOT NULL,
    user_id uuid,
    agent_id uuid,
    visibility text NOT NULL CHECK (visibility IN ('public', 'private', 'shared')),
    allowed_vendors text[] NOT NULL DEFAULT '{*}',
    kind text NOT NULL,
    key text,
    text text NOT NULL,
    author text NOT NULL,
    origin text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    superseded_by uuid,
    trashed_at timestamptz,
    valid_to timestamptz,
    merged_into uuid,
    trust text NOT NULL DEFAULT 'member' CHECK (trust IN ('member', 'guest', 'tool')),
    title text,
    content text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata json NOT NULL DEFAULT '{}',
    session text,
    updated_at timestamptz,
    version int NOT NULL DEFAULT 1,
    said_at timestamptz,
    history jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (tenant_id, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);
-- The history of an entry with another version; of 50 the oldest goes.
CREATE FUNCTION with_version(history jsonb, version int, at timestamptz, by text, changed text[]) RETURNS jsonb
    LANGUAGE sql STABLE RETURN CASE WHEN jsonb_array_length(history) < 50 THEN history ELSE history - 0 END
        || jsonb_build_object('version', version, 'at', at, 'by', by, 'changed', changed);
CREATE INDEX memories_by_key ON memories (tenant_id, user_id, key) WHERE key IS NOT NULL;
CREATE INDEX memories_by_namespace ON memories (tenant_id, namespace, created_at DESC, id DESC);
CREATE INDEX memories_by_user ON memories (tenant_id, user_id, id);
CREATE INDEX memories_by_user_at ON memories (tenant_id, user_id, created_at DESC, id DESC);
CREATE INDEX memories_decisions ON memories (tenant_id, user_id, namespace) WHERE kind = 'decision';
CREATE INDEX memories_entries ON memories (tenant_id)
    WHERE trashed_at IS NULL AND superseded_by IS NULL AND merged_into IS NULL AND origin <> 'extracted'
          AND (starts_with(namespace, 'entries:') OR starts_with(namespace, 'team:') OR starts_with(namespace, 'project:'));
CREATE INDEX memories_extracted ON memories (tenant_id, namespace, visibility, user_id)
    WHERE origin = 'extracted' AND trashed_at IS NULL;
CREATE INDEX memories_merged ON memories (tenant_id, merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX memories_shared_with_teams ON memories (tenant_id, user_id, namespace)
    WHERE starts_with(namespace, 'team:');
CREATE INDEX memories_superseded ON memories (tenant_id, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX memories_to_expire ON memories (tenant_id, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_to_purge ON memories (tenant_id, trashed_at) WHERE trashed_at IS NOT NULL;

-- Typed values. A row held from valid_from until valid_to (NULL: it holds now). set_at: when its author set it, where sharing or
-- approving made it hold from a later time on.
CREATE TABLE facts (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    namespace text NOT NULL,
    user_id uuid,
    agent_id uuid,
    visibility text NOT NULL CHECK (visibility IN ('public', 'private', 'shared')),
    key text NOT NULL,
    value jsonb NOT NULL,
    author text NOT NULL,
    origin text NOT NULL,
    valid_from timestamptz NOT NULL,
    valid_to timestamptz,
    trust text NOT NULL DEFAULT 'member' CHECK (trust IN ('member', 'guest', 'tool')),
    set_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX facts_by_key ON facts (tenant_id, namespace, key, valid_from);
CREATE INDEX facts_by_user ON facts (tenant_id, user_id, id);
CREATE UNIQUE INDEX facts_current ON facts (tenant_id, namespace, visibility, key) WHERE valid_to IS NULL;

-- Decisions. What is found in messages is proposed until a person accepts it. replaces: the version before it, which is retired.
-- settled_by: who accepted, amended or retired it.
CREATE TABLE landmarks (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    namespace text NOT NULL,
    user_id uuid,
    agent_id uuid,
    visibility text NOT NULL CHECK (visibility IN ('public', 'private', 'shared')),
    text text NOT NULL,
    author text NOT NULL,
    decided_at timestamptz NOT NULL,
    replaces uuid,
    retired_at timestamptz,
    state text NOT NULL DEFAULT 'pinned' CHECK (state IN ('proposed', 'pinned', 'retired')),
    settled_by text,
    trust text NOT NULL DEFAULT 'member' CHECK (trust IN ('member', 'guest', 'tool')),
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX landmarks_by_namespace ON landmarks (tenant_id, namespace, decided_at);
CREATE INDEX landmarks_by_user ON landmarks (tenant_id, user_id, id);

-- What untrusted people wrote or caused to be extracted, until somebody approves or rejects it. It has a table of its own, so
-- that no statement about memories, facts and landmarks can read it. A row that was decided stays, without its text, so that
-- indexing its message again does not ask again. entry: the rest of an entry, as JSON.
CREATE TABLE quarantine (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('memory', 'fact', 'landmark')),
    item_id uuid NOT NULL,
    namespace text NOT NULL,
    user_id uuid NOT NULL,
    visibility text NOT NULL CHECK (visibility IN ('public', 'private', 'shared')),
    trust text NOT NULL CHECK (trust IN ('member', 'guest', 'tool')),
    detail text NOT NULL,
    text text NOT NULL,
    author text NOT NULL,
    origin text NOT NULL,
    at timestamptz NOT NULL,
    state text NOT NULL CHECK (state IN ('pending', 'approved', 'rejected')),
    entry json,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX quarantine_by_user ON quarantine (tenant_id, user_id, id);
CREATE INDEX quarantine_pending ON quarantine (tenant_id, namespace, at) WHERE state = 'pending';

-- What an item was made from. Items: memory, fact, landmark, summary, turn. Sources: message, summary, memory, fact, landmark,
-- reminder.
CREATE TABLE lineage (
    tenant_id uuid NOT NULL REFERENCES tenants,
    item_kind text NOT NULL,
    item_id uuid NOT NULL,
    source_kind text NOT NULL,
    source_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, item_id, source_id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);
CREATE INDEX lineage_by_source ON lineage (tenant_id, source_id);

CREATE TABLE summaries (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    conversation_id uuid,
    tier text NOT NULL CHECK (tier IN ('thread', 'session', 'day', 'week')),
    namespace text NOT NULL,
    user_id uuid,
    agent_id uuid,
    visibility text NOT NULL CHECK (visibility IN ('public', 'private', 'shared')),
    starts_at timestamptz NOT NULL,
    ends_at timestamptz NOT NULL,
    text text NOT NULL,
    tokens int NOT NULL,
    model text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX summaries_by_namespace ON summaries (tenant_id, namespace, tier, ends_at DESC);

-- Quarters of an hour of a conversation in which messages were written, edited or erased since the tier last looked, or whose
-- author has opted out or in. Triggers write it, so that no statement can forget to. Days of every time zone begin on such a
-- quarter.
CREATE TABLE summaries_due (
    tenant_id uuid NOT NULL,
    tier text NOT NULL CHECK (tier IN ('thread', 'session', 'day', 'week')),
    conversation_id uuid NOT NULL,
    namespace text NOT NULL,
    quarter timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, tier, conversation_id, namespace, quarter),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations ON DELETE CASCADE
);

-- Mark the quarters of an hour of messages that were written or erased. A mark that is there is set again (DO UPDATE), and so
-- locked: a job that clears it waits for the messages that set it. A room's day is that of the room with its threads.
CREATE FUNCTION note_summaries_due() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE TRIGGER messages_said AFTER INSERT ON messages
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_summaries_due();
CREATE TRIGGER messages_erased AFTER DELETE ON messages
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_summaries_due();

-- Mark the quarter of an hour of a message whose text was edited. That it was indexed changes no summary.
CREATE FUNCTION note_edited() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE TRIGGER messages_edited AFTER UPDATE OF text ON messages FOR EACH ROW
    WHEN (OLD.text IS DISTINCT FROM NEW.text AND NEW.agent_id IS NULL AND NOT NEW.ephemeral) EXECUTE FUNCTION note_edited();

-- Mark all quarters of an hour of a person who opts out, and is in no summary any more, or who opts in again.
CREATE FUNCTION note_opted() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
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
CREATE TRIGGER users_opted AFTER UPDATE OF opted_out ON users FOR EACH ROW
    WHEN (OLD.opted_out IS DISTINCT FROM NEW.opted_out) EXECUTE FUNCTION note_opted();

-- Say to every process, once the transaction is stored, that something of somebody was written, moved or erased: where it is
-- filed and whose it is, before and after, never what it is. Open pages ask again then.
CREATE FUNCTION note_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM pg_notify('turns', concat_ws(' ', 'changed', OLD.tenant_id, OLD.visibility, coalesce(OLD.user_id::text, '-'), OLD.namespace));
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM pg_notify('turns', concat_ws(' ', 'changed', NEW.tenant_id, NEW.visibility, coalesce(NEW.user_id::text, '-'), NEW.namespace));
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER memories_changed AFTER INSERT OR UPDATE OR DELETE ON memories FOR EACH ROW EXECUTE FUNCTION note_changed();
CREATE TRIGGER facts_changed AFTER INSERT OR UPDATE OR DELETE ON facts FOR EACH ROW EXECUTE FUNCTION note_changed();
CREATE TRIGGER landmarks_changed AFTER INSERT OR UPDATE OR DELETE ON landmarks FOR EACH ROW EXECUTE FUNCTION note_changed();
CREATE TRIGGER quarantine_changed AFTER INSERT OR UPDATE OR DELETE ON quarantine FOR EACH ROW EXECUTE FUNCTION note_changed();

-- A summary that stands for the oldest messages of a conversation in one agent's prompts. It covers all messages up to
-- (through_at, through_seq); (made_at, made_seq) was the newest one then.
CREATE TABLE compactions (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    namespace text NOT NULL,
    user_id uuid,
    visibility text NOT NULL CHECK (visibility IN ('public', 'private', 'shared')),
    through_at timestamptz NOT NULL,
    through_seq bigint NOT NULL,
    made_at timestamptz NOT NULL,
    made_seq bigint NOT NULL,
    messages int NOT NULL,
    text text NOT NULL,
    tokens int NOT NULL,
    model text NOT NULL,
    before_tokens int NOT NULL,
    after_tokens int NOT NULL,
    requested boolean NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations ON DELETE CASCADE
);
CREATE INDEX compactions_latest ON compactions (tenant_id, conversation_id, agent_id, namespace, made_at DESC, made_seq DESC);

-- Receipts of erasures: counts, and digests of the erased ids under a key of their own, to check later that nothing of it is
-- there. They hold nothing of what was erased.
CREATE TABLE receipts (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id text NOT NULL,
    made_at timestamptz NOT NULL,
    key bytea NOT NULL,
    counts jsonb NOT NULL,
    digests bytea[] NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

-- Recall and extraction ------------------------------------------------------------------------------------------------

-- Messages as they are indexed for recall.
CREATE TABLE episodes (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    message_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, message_id) REFERENCES messages ON DELETE CASCADE
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);
CREATE INDEX episodes_by_message ON episodes (tenant_id, message_id);

-- Whether each dimension of a vector is far from zero: one bit each, beside the bits of its sign.
CREATE FUNCTION magnitude(embedding vector) RETURNS bit varying
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (
        -- 0.98 standard deviations, where two bits a dimension lose least of what is normally distributed (Lloyd, Max).
        SELECT (binary_quantize(embedding - array_fill(far, ARRAY[width])::vector)
                | binary_quantize(array_fill(-far, ARRAY[width])::vector - embedding))::bit varying
        FROM (SELECT (0.98 * vector_norm(embedding) / sqrt(vector_dims(embedding)))::real AS far, vector_dims(embedding) AS width)
             AS of_it
    );

-- The words of a message: its text, then the names and texts of its files, and what is spoken in its voice notes.
CREATE FUNCTION message_words(text text, attachments jsonb) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (
        SELECT concat_ws(E'\n', nullif(text, ''), string_agg(
                   CASE WHEN file ->> 'type' LIKE 'audio/%' THEN file ->> 'text'
                        ELSE concat_ws(E'\n', nullif(file ->> 'name', ''), file ->> 'text') END, E'\n' ORDER BY n))
        FROM jsonb_array_elements(attachments) WITH ORDINALITY AS files (file, n)
        WHERE file ->> 'text' <> '' AND file ->> 'type' NOT LIKE 'image/%'
    );

-- Everything that recall can find, with the columns that decide who may read it. A long text has a row for each of its
-- passages, which overlap: `part` is its number, `start` and `chars` say where it stands in the whole text (`chars` NULL: it is
-- all of it). The covering index has two bits for each
-- dimension of a vector (its sign, and whether it is far from zero), so that a namespace is searched without its table.
CREATE TABLE recall_index (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('episode', 'memory', 'summary')),
    namespace text NOT NULL,
    user_id uuid,
    visibility text NOT NULL,
    vendors text[],
    at timestamptz NOT NULL,
    expires_at timestamptz,
    length int NOT NULL,
    embedding vector,
    signature bit varying GENERATED ALWAYS AS ((binary_quantize(embedding))::bit varying) STORED,
    magnitude bit varying GENERATED ALWAYS AS (
CASE
    WHEN (embedding IS NOT NULL) THEN magnitude(embedding)
    ELSE NULL::bit varying
END) STORED,
    part smallint NOT NULL DEFAULT 1,
    start int NOT NULL DEFAULT 0,
    chars int,
    PRIMARY KEY (tenant_id, id, part)
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);
CREATE INDEX recall_index_scan ON recall_index (tenant_id, namespace)
    INCLUDE (id, part, visibility, user_id, vendors, at, expires_at, length, signature, magnitude);
CREATE INDEX recall_index_to_embed ON recall_index (tenant_id, at, id, part) WHERE embedding IS NULL;

-- Words for the text search: which item has which stem how often. length: the number of the item's terms.
CREATE TABLE recall_terms (
    tenant_id uuid NOT NULL,
    namespace text NOT NULL,
    term text NOT NULL,
    item_id uuid NOT NULL,
    tf smallint NOT NULL,
    length int NOT NULL,
    visibility text NOT NULL,
    user_id uuid,
    vendors text[],
    at timestamptz NOT NULL,
    expires_at timestamptz,
    part smallint NOT NULL DEFAULT 1,
    FOREIGN KEY (tenant_id, item_id, part) REFERENCES recall_index ON DELETE CASCADE
) WITH (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.05
);
CREATE INDEX recall_terms_by_item ON recall_terms (tenant_id, item_id, part);
CREATE INDEX recall_terms_scan ON recall_terms (tenant_id, namespace, term)
    INCLUDE (item_id, part, tf, length, visibility, user_id, vendors, at, expires_at);

-- Vectors of a new embedder, beside those in use, until it takes over (nexus reembed).
CREATE TABLE reembedded (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    embedding vector NOT NULL,
    part smallint NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant_id, id, part),
    FOREIGN KEY (tenant_id, id, part) REFERENCES recall_index ON DELETE CASCADE
);

-- Messages that a model has to look at for memories. A message is queued by the transaction that indexes it, and removed by
-- the one that stores what was found.
CREATE TABLE extraction_queue (
    tenant_id uuid NOT NULL,
    message_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    namespace text NOT NULL,
    visibility text NOT NULL,
    queued_at timestamptz NOT NULL,
    user_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, message_id),
    FOREIGN KEY (tenant_id, message_id) REFERENCES messages ON DELETE CASCADE
);
CREATE INDEX extraction_queue_by_scope ON extraction_queue (tenant_id, conversation_id, namespace, visibility, user_id);

-- Attempts at what waits to be learnt from, by scope: a person's messages of one conversation, namespace and visibility, or what one
-- tool of a user asked models. claim: the attempt that works on it, until claimed_until. parked_at: it failed too often, and
-- an admin has to look. error: a sentence of ours.
CREATE TABLE learning_batches (
    tenant_id uuid NOT NULL,
    scope text NOT NULL,
    conversation_id uuid,
    user_id uuid,
    claim uuid,
    claimed_until timestamptz,
    attempts int NOT NULL DEFAULT 0,
    due_at timestamptz,
    parked_at timestamptz,
    error text,
    PRIMARY KEY (tenant_id, scope),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);

-- Keys, sign-ins and connected apps ------------------------------------------------------------------------------------

-- Keys of people (vendor NULL) and of their AI tools. Of every secret only the SHA-256 is stored; prefix: the beginning of the
-- key, by which people tell keys apart. created_by NULL: whoever runs Nexus. A revoked key stays for a while, to be shown.
-- client, redirect_uri: of an app that was connected by OAuth, which has tokens in place of a key's text.
CREATE TABLE api_keys (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    vendor text,
    name text NOT NULL,
    prefix text NOT NULL,
    digest bytea,
    permissions text[] NOT NULL,
    created_at timestamptz NOT NULL,
    created_by uuid,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    client text,
    redirect_uri text,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT api_keys_opened_by CHECK (((digest IS NULL) = (client IS NOT NULL)) AND ((client IS NULL) = (redirect_uri IS NULL))),
    UNIQUE (tenant_id, digest),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX api_keys_by_user ON api_keys (tenant_id, user_id, created_at);

-- The tokens of one sign-in of an app that are valid now. family_digest: of the part that all its refresh tokens begin with, so
-- that one which was used before is known without being stored.
CREATE TABLE app_tokens (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    key_id uuid NOT NULL,
    resource text NOT NULL,
    permissions text[] NOT NULL,
    access_digest bytea NOT NULL,
    access_expires_at timestamptz NOT NULL,
    family_digest bytea NOT NULL,
    refresh_digest bytea NOT NULL,
    refresh_expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, access_digest),
    UNIQUE (tenant_id, family_digest),
    FOREIGN KEY (tenant_id, key_id) REFERENCES api_keys ON DELETE CASCADE
);
CREATE INDEX app_tokens_by_key ON app_tokens (tenant_id, key_id);

-- Signed-in browsers. browser: what it calls itself.
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
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX web_sessions_by_user ON web_sessions (tenant_id, user_id, created_at);

-- Codes that work once: the row is deleted then. purpose: to sign in by a link (login), to connect two accounts of one person,
-- shown to one and entered with the other (link), by which an app (key_id) gets its first tokens (app), or by which somebody
-- becomes a person of the tenant (invite), invited by user_id; NULL: by whoever runs Nexus, as its first admin. asked: what
-- that app asked for (composer.repositories.one_time_codes.AppRequest), or whom an invitation is for.
CREATE TABLE one_time_codes (
    tenant_id uuid NOT NULL,
    digest bytea NOT NULL,
    purpose text NOT NULL CHECK (purpose IN ('login', 'link', 'app', 'invite')),
    user_id uuid,
    expires_at timestamptz NOT NULL,
    key_id uuid,
    asked jsonb,
    PRIMARY KEY (tenant_id, digest),
    CONSTRAINT one_time_codes_of_app CHECK (((purpose = 'app') = (key_id IS NOT NULL)) AND ((purpose IN ('app', 'invite')) = (asked IS NOT NULL))),
    CONSTRAINT one_time_codes_of_person CHECK ((user_id IS NOT NULL) OR (purpose = 'invite')),
    FOREIGN KEY (tenant_id, key_id) REFERENCES api_keys ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX one_time_codes_by_key ON one_time_codes (tenant_id, key_id) WHERE key_id IS NOT NULL;
CREATE INDEX one_time_codes_by_user ON one_time_codes (tenant_id, user_id);

-- Accounts at the OpenID provider that people have connected. digest: SHA-256 of issuer and subject; the subject itself is not
-- stored. name: what the provider called the account then, to be shown to its person.
CREATE TABLE openid_logins (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    digest bytea NOT NULL,
    issuer text NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL,
    last_used_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, digest),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX openid_logins_by_user ON openid_logins (tenant_id, user_id, created_at);

-- Requests that take effect once: writes over the API that name an idempotency key, and commands, whose key is that of their
-- event. caller: the id of a key or a web session, or 'command'. Keys and contents are stored as SHA-256 alone. made: the id of
-- what it made; NULL: nothing yet. call: of a command, until it was answered; process runs it.
CREATE TABLE requests (
    tenant_id uuid NOT NULL,
    caller text NOT NULL,
    key_digest bytea NOT NULL,
    digest bytea NOT NULL,
    user_id uuid,
    made uuid,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    process bigint,
    call jsonb,
    PRIMARY KEY (tenant_id, caller, key_digest),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX requests_by_expiry ON requests (tenant_id, expires_at);
CREATE INDEX requests_unanswered ON requests (tenant_id) WHERE call IS NOT NULL;

-- The model gateway ----------------------------------------------------------------------------------------------------

-- What the gateway has put into a request of a person's tool (vendor; *: their own key), so that the requests of its tool loop
-- get the same. digest: SHA-256 of the messages up to the user's last one. standing and recalled: ids of what was shown.
CREATE TABLE gateway_turns (
    tenant_id uuid NOT NULL,
    user_id uuid NOT NULL,
    vendor text NOT NULL,
    digest bytea NOT NULL,
    standing uuid[] NOT NULL,
    recalled uuid[] NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, user_id, vendor, digest),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX gateway_turns_by_age ON gateway_turns (tenant_id, created_at);

-- What the gateway learns from: a user's own words of a message, until statements were extracted; then they are empty, and the
-- row stays for a while so that the same turn is learnt once. vendor: who the statements are written by (gateway: the
-- person's own key).
CREATE TABLE gateway_exchanges (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    vendor text NOT NULL,
    question text NOT NULL,
    said_at timestamptz NOT NULL,
    learnt_at timestamptz,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX gateway_exchanges_by_age ON gateway_exchanges (tenant_id, said_at);
CREATE INDEX gateway_exchanges_waiting ON gateway_exchanges (tenant_id, user_id, vendor, said_at)
    WHERE learnt_at IS NULL;

-- Usage ----------------------------------------------------------------------------------------------------------------

-- Model calls, added up by day in the tenant's time zone. An id of zeros stands for none: the installation as tenant_id (probes
-- by nexus doctor), no conversation, nobody. So there are no foreign keys, and rows outlive what they name.
CREATE TABLE model_usage (
    tenant_id uuid NOT NULL,
    day date NOT NULL,
    kind text NOT NULL,
    agent_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    user_id uuid NOT NULL,
    model text NOT NULL,
    calls bigint NOT NULL,
    failures bigint NOT NULL,
    refused bigint NOT NULL,
    estimated bigint NOT NULL,
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    unpriced_tokens bigint NOT NULL,
    cost numeric NOT NULL,
    PRIMARY KEY (tenant_id, day, kind, agent_id, conversation_id, user_id, model)
);
CREATE INDEX model_usage_by_user ON model_usage (tenant_id, user_id, day);

-- What running calls may use at most, while a budget counts them, so that all processes together stay within it. A row is
-- deleted when its call ends, and expires in case its process died.
CREATE TABLE usage_reservations (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    agent text NOT NULL,
    tokens bigint NOT NULL,
    cost numeric NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

-- What was done over the API, added up by month in the tenant's time zone. vendor: the tool, or api for the person. tokens: an
-- estimate of what was stored or handed out. An id of zeros stands for nobody.
CREATE TABLE operation_totals (
    tenant_id uuid NOT NULL,
    month date NOT NULL,
    user_id uuid NOT NULL,
    vendor text NOT NULL,
    operation text NOT NULL,
    count bigint NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (tenant_id, month, user_id, vendor, operation)
);
CREATE INDEX operation_totals_by_user ON operation_totals (tenant_id, user_id, month);

-- That a tenant has used most of a quota of its plan in a month: for each admin, told once (told_at).
CREATE TABLE quota_notices (
    tenant_id uuid NOT NULL,
    month date NOT NULL,
    quota text NOT NULL,
    user_id uuid NOT NULL,
    used bigint NOT NULL,
    most bigint NOT NULL,
    told_at timestamptz,
    PRIMARY KEY (tenant_id, month, quota, user_id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX quota_notices_untold ON quota_notices (tenant_id, month) WHERE told_at IS NULL;

-- The audit log --------------------------------------------------------------------------------------------------------

-- The audit log (docs/operations.md): who did what to whom and where, by ids alone. Rows are only added. A job seals them: each
-- seal has the digest of the seal before it. Events, seals and the anchor are signed with a key that is not in the database,
-- so that its administrator can't rewrite the log unseen.
CREATE TABLE audit_events (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    at timestamptz NOT NULL,
    act text NOT NULL,
    actor_id uuid,
    user_ids uuid[] NOT NULL,
    conversation_id uuid,
    project_id uuid,
    details jsonb NOT NULL,
    key_id text NOT NULL,
    signature bytea NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX audit_events_by_time ON audit_events (tenant_id, at, id);

CREATE TABLE audit_seals (
    tenant_id uuid NOT NULL REFERENCES tenants,
    number bigint NOT NULL,
    event_id uuid NOT NULL,
    sealed_at timestamptz NOT NULL,
    event_digest bytea NOT NULL,
    before bytea NOT NULL,
    key_id text NOT NULL,
    signature bytea NOT NULL,
    PRIMARY KEY (tenant_id, number),
    UNIQUE (tenant_id, event_id)
);

-- Where retention cut the log: the digest of the last row that was deleted.
CREATE TABLE audit_anchors (
    tenant_id uuid PRIMARY KEY REFERENCES tenants,
    number bigint NOT NULL,
    digest bytea NOT NULL,
    cut_at timestamptz NOT NULL,
    key_id text NOT NULL,
    signature bytea NOT NULL
);

-- Events that wait for their seal. Verification does not rely on it: it compares events and seals.
CREATE TABLE audit_unsealed (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

-- Refuse to change the audit log, but for audit_cut.
CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'TRUNCATE' AND current_setting('nexus.audit_cut', true) = 'on' THEN
        RETURN coalesce(NEW, OLD); -- audit_cut
    END IF;
    RAISE EXCEPTION 'the audit log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME;
END
$$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_seals
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON audit_seals
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON audit_anchors
    FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON audit_anchors
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

-- Delete the sealed rows up to a number, and leave a signed anchor in their place: the one way in which the service, which may
-- not delete rows, shortens the log. Without a signed anchor verification fails.
CREATE FUNCTION audit_cut(through bigint, last_digest bytea, cut timestamptz, signer text, anchor_signature bytea)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    deleted bigint;
BEGIN
    PERFORM set_config('nexus.audit_cut', 'on', true);
    DELETE FROM audit_events AS e USING audit_seals AS s
    WHERE s.tenant_id = current_tenant() AND s.number <= through
          AND e.tenant_id = s.tenant_id AND e.id = s.event_id;
    DELETE FROM audit_seals WHERE tenant_id = current_tenant() AND number <= through;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    INSERT INTO audit_anchors AS a (tenant_id, number, digest, cut_at, key_id, signature)
    VALUES (current_tenant(), through, last_digest, cut, signer, anchor_signature)
    ON CONFLICT (tenant_id) DO UPDATE SET number = excluded.number, digest = excluded.digest, cut_at = excluded.cut_at,
        key_id = excluded.key_id, signature = excluded.signature;
    PERFORM set_config('nexus.audit_cut', '', true);
    RETURN deleted;
END
$$;
REVOKE ALL ON FUNCTION audit_cut(bigint, bytea, timestamptz, text, bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION audit_cut(bigint, bytea, timestamptz, text, bytea) TO nexus_service;

-- Functions over many tables -------------------------------------------------------------------------------------------

-- Delete those conversations and people of an undone import, in the present tenant, that nothing else has used since. The
-- service may delete no others. A thread's namespace is its room's.
CREATE FUNCTION delete_unused_of_import(run uuid, OUT conversations bigint, OUT people bigint) RETURNS record
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
DECLARE
    tenant uuid := current_tenant();
    gone bigint;
BEGIN
    conversations := 0;
    LOOP  -- threads and then their rooms
        DELETE FROM public.conversations AS c
        WHERE c.tenant_id = tenant AND c.import_id = run AND c.project_id IS NULL AND c.recording = 'on'
              AND c.noticed_at IS NULL AND c.notice_for IS NULL AND c.digest_due_at IS NULL
              AND NOT EXISTS (SELECT FROM public.conversations AS t WHERE t.tenant_id = tenant AND t.room_id = c.id)
              AND NOT EXISTS (SELECT FROM messages AS m WHERE m.tenant_id = tenant AND m.conversation_id = c.id)
              AND NOT EXISTS (SELECT FROM members AS m WHERE m.tenant_id = tenant AND m.conversation_id = c.id)
              AND NOT EXISTS (SELECT FROM turns AS t WHERE t.tenant_id = tenant AND t.conversation_id = c.id)
              AND NOT EXISTS (SELECT FROM reminders AS r WHERE r.tenant_id = tenant AND r.conversation_id = c.id)
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
    -- Whoever is becoming a member of a room just now is waited for, and seen by the next statement.
    PERFORM FROM users AS u
    WHERE u.tenant_id = tenant AND u.import_id = run
          AND NOT EXISTS (SELECT FROM messages AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM api_keys AS k WHERE k.tenant_id = tenant AND k.user_id = u.id)
          AND NOT EXISTS (SELECT FROM web_sessions AS w WHERE w.tenant_id = tenant AND w.user_id = u.id)
    ORDER BY u.id FOR UPDATE;
    DELETE FROM users AS u
    WHERE u.tenant_id = tenant AND u.import_id = run AND u.person_id IS NULL
          AND NOT u.admin AND NOT u.opted_out AND NOT u.reads_rooms AND u.disabled_at IS NULL AND u.settings IS NULL
          AND NOT EXISTS (SELECT FROM messages AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM members AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM project_members AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM team_members AS m WHERE m.tenant_id = tenant AND m.user_id = u.id)
          AND NOT EXISTS (SELECT FROM invites AS i
                          WHERE i.tenant_id = tenant AND (i.user_id = u.id OR i.created_by = u.id))
          AND NOT EXISTS (SELECT FROM public.conversations AS c WHERE c.tenant_id = tenant AND c.user_id = u.id)
          AND NOT EXISTS (SELECT FROM reminders AS r WHERE r.tenant_id = tenant AND r.user_id = u.id)
          AND NOT EXISTS (SELECT FROM memories AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM facts AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM landmarks AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM quarantine AS i WHERE i.tenant_id = tenant AND i.user_id = u.id)
          AND NOT EXISTS (SELECT FROM api_keys AS k WHERE k.tenant_id = tenant AND k.user_id = u.id)
          AND NOT EXISTS (SELECT FROM web_sessions AS w WHERE w.tenant_id = tenant AND w.user_id = u.id)
          AND NOT EXISTS (SELECT FROM one_time_codes AS l WHERE l.tenant_id = tenant AND l.user_id = u.id)
          AND NOT EXISTS (SELECT FROM openid_logins AS o WHERE o.tenant_id = tenant AND o.user_id = u.id);
    GET DIAGNOSTICS people = ROW_COUNT;
END;
$$;
REVOKE ALL ON FUNCTION delete_unused_of_import(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION delete_unused_of_import(uuid) TO nexus_service;

-- Take the planner's statistics of the table that has grown most since they were taken. Plans are kept (see
-- composer/stores/database/postgres.py), so they must not be those of a table that was much smaller: autovacuum takes statistics too,
-- but up to a minute later, and a plan that was made meanwhile can take a hundred times as long. Only a table's owner may
-- analyse it, so this is a function of the owner. Returns the table's name, or NULL when none has grown; passed: tables to
-- leave out, because another session analyses them.
CREATE FUNCTION analyze_grown_table(passed text[]) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'public', 'pg_temp'
    AS $$
DECLARE
    grown text;
BEGIN
    SELECT relname INTO grown FROM (
        SELECT relname, reltuples, relpages, pg_relation_size(oid) / current_setting('block_size')::int AS pages
        FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> ALL (passed)
    ) AS tables
    WHERE pages > CASE WHEN reltuples > 0 THEN 2 * relpages + 4 ELSE 0 END
    ORDER BY pages DESC, relname LIMIT 1;
    IF grown IS NOT NULL THEN
        EXECUTE format('ANALYZE (SKIP_LOCKED) %I', grown);
    END IF;
    RETURN grown;
END
$$;
REVOKE ALL ON FUNCTION analyze_grown_table(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION analyze_grown_table(text[]) TO nexus_service;

-- The tenants that have open turns, or files to be read: every process asks every few seconds, and asking each
-- tenant would cost as much as there are tenants. Only ids, of tenants alone: what there is to do is read by tenant.
CREATE FUNCTION tenants_with_open_work() RETURNS SETOF uuid
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'public', 'pg_temp'
    AS $$
    SELECT tenant_id FROM public.turns WHERE state <> 'sent'
    UNION SELECT tenant_id FROM public.unread_files
$$;
REVOKE ALL ON FUNCTION tenants_with_open_work() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_open_work() TO nexus_service;

-- Row-level security ---------------------------------------------------------------------------------------------------

-- Every table with a tenant_id, but the list of tenants itself.
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN
        SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'tenants'
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = current_tenant())', name);
    END LOOP;
END
$$;
-- For tenants_with_open_work, which runs as the owner.
CREATE POLICY owner ON turns FOR SELECT TO CURRENT_USER USING (true);
CREATE POLICY owner ON unread_files FOR SELECT TO CURRENT_USER USING (true);

-- Statistics -----------------------------------------------------------------------------------------------------------

-- Whether a column may hold what people wrote, or vectors or digests of it: every one of these types but a few of ours.
CREATE FUNCTION holds_words(name name, type oid) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE RETURN
    regexp_replace(format_type(type, NULL), '^.*\.', '')  -- without the schema of pgvector
        IN ('text', 'text[]', 'json', 'jsonb', 'bytea', 'bytea[]', 'vector', 'bit varying')
    AND name <> ALL ('{act,adapter,external_id,item_kind,kind,namespace,platform,role,source_kind,state,tier,trust,vendors,
                       visibility,workspace}'::name[]);

-- The planner's statistics are samples of what columns hold, and outlive the rows: of such columns none are taken.
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
    END LOOP;
END
$$;

-- Rights of the service ------------------------------------------------------------------------------------------------

-- Those that the statements in sql/queries use, and no others: a test compares them.
GRANT USAGE ON SCHEMA public TO nexus_service;
GRANT SELECT ON audit_anchors, schema_migrations TO nexus_service;
GRANT SELECT, INSERT ON agents, audit_events, audit_seals, episodes, erased, identities, receipts, tenants
    TO nexus_service;
GRANT SELECT, INSERT, DELETE ON audit_unsealed, compactions, lineage, projects, reembedded, retractions,
    summaries, teams, usage_reservations TO nexus_service;
GRANT SELECT, INSERT, UPDATE ON conversations, imports, recall_terms, users TO nexus_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON api_keys, app_tokens, deliveries,
    deployment, extraction_queue, facts, gateway_exchanges, gateway_turns,
    invites, job_runs, landmarks, learning_batches, members, memories, messages, model_usage,
    oauth_clients, one_time_codes, openid_logins, operation_totals, posted_files, project_members, quarantine,
    quota_notices, recall_index, reminders, requests, settings, summaries_due, team_members, turns,
    unread_files, web_sessions TO nexus_service;
GRANT UPDATE (name) ON teams TO nexus_service;
GRANT UPDATE (slug) ON projects TO nexus_service;
GRANT UPDATE (created_at) ON tenants TO nexus_service;  -- to lock the row (tenant_serialize)
GRANT UPDATE (erased_at) ON erased TO nexus_service;
GRANT UPDATE (counts, digests) ON receipts TO nexus_service;
GRANT UPDATE (trust, trust_stated_at, timezone) ON identities TO nexus_service;
GRANT UPDATE (refused_since, retry_at) ON retractions TO nexus_service;
