-- The whole of what Nexus keeps: who, where, what was said, what is remembered, and from what.
-- Every key begins with the tenant. Every table with a tenant is under row-level security,
-- which the service's own role (nexus_service) is subject to: a statement that forgets its
-- tenant reads nothing.

CREATE EXTENSION IF NOT EXISTS vector;

DO $$
BEGIN
    CREATE ROLE nexus_service NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL; -- roles belong to the cluster: another database of it made the role
END
$$;
DO $$
BEGIN
    EXECUTE format('GRANT nexus_service TO %I', current_user);
EXCEPTION WHEN OTHERS THEN
    IF NOT pg_has_role(current_user, 'nexus_service', 'MEMBER') THEN RAISE; END IF;
END
$$;

-- The tenant that the current transaction works for; NULL (and so no row at all) when unset.
CREATE FUNCTION current_tenant() RETURNS uuid LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('nexus.tenant', true), '')::uuid;

-- The rule of composer/visibility.py for one row whose run is in scope; a test holds the two against each other.
CREATE FUNCTION may_read(
    run_id text, visibility text, user_id uuid, vendors text[],
    pooled text[], visibilities text[], readers uuid[], vendor text
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    (vendors IS NULL OR vendors && ARRAY['*', vendor])
    AND (visibility = ANY (visibilities) OR (visibility = 'private' AND user_id = ANY (readers))
         OR run_id = ANY (pooled)); -- last, since it is the dearest

-- What is true of this installation as a whole (the embedder of its vectors). Holds nothing a person said.
CREATE TABLE deployment (
    key text PRIMARY KEY,
    value jsonb NOT NULL
);

-- The map of tenants. Slug and id only: workers go through it to find whose work is due.
CREATE TABLE tenants (
    tenant_id uuid PRIMARY KEY,
    slug text NOT NULL UNIQUE,
    created_at timestamptz NOT NULL
);

CREATE TABLE workspaces (
    tenant_id uuid NOT NULL REFERENCES tenants,
    platform text NOT NULL,
    workspace text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, platform, workspace)
);

CREATE TABLE settings (
    tenant_id uuid NOT NULL REFERENCES tenants,
    key text NOT NULL,
    value jsonb NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, key)
);

CREATE TABLE users (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    name text NOT NULL,
    admin boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE identities (
    tenant_id uuid NOT NULL,
    platform text NOT NULL,
    workspace text NOT NULL,
    external_id text NOT NULL,
    user_id uuid NOT NULL,
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
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE team_members (
    tenant_id uuid NOT NULL,
    team_id uuid NOT NULL,
    user_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, team_id, user_id),
    FOREIGN KEY (tenant_id, team_id) REFERENCES teams ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);

CREATE TABLE projects (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    slug text NOT NULL,
    isolated boolean NOT NULL,
    created_by uuid,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, slug)
);

CREATE TABLE project_members (
    tenant_id uuid NOT NULL,
    project_id uuid NOT NULL,
    user_id uuid NOT NULL,
    role text NOT NULL CHECK (role IN ('read', 'write', 'admin')),
    PRIMARY KEY (tenant_id, project_id, user_id),
    FOREIGN KEY (tenant_id, project_id) REFERENCES projects ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);

-- A room, a thread of a room, a DM or a session. `run_id` is what its words are filed under:
-- a thread's is its room's; a private room that becomes public gets a new one (generation + 1).
-- `version` grows with every change to its log, so that a cached view can be told from a stale one.
CREATE TABLE conversations (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('room', 'thread', 'dm', 'session')),
    platform text NOT NULL,
    workspace text NOT NULL,
    name text NOT NULL,
    run_id text NOT NULL,
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
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, room_id) REFERENCES conversations ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, project_id) REFERENCES projects ON DELETE SET NULL (project_id),
    CHECK ((kind = 'thread') = (room_id IS NOT NULL)),
    CHECK ((kind IN ('dm', 'session')) = (user_id IS NOT NULL AND agent_id IS NOT NULL))
);
CREATE INDEX conversations_by_project ON conversations (tenant_id, project_id) WHERE project_id IS NOT NULL;
CREATE INDEX conversations_by_name ON conversations (tenant_id, platform, workspace, kind, name);

CREATE TABLE members (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    user_id uuid NOT NULL,
    admin boolean NOT NULL DEFAULT false,
    joined_at timestamptz NOT NULL,
    left_at timestamptz,
    PRIMARY KEY (tenant_id, conversation_id, user_id),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);

-- The log: what was said, as it was said. `seq` orders a conversation and means nothing outside it.
-- `user_id` is whose words they are; an agent's (`agent_id`) in a DM or a session are that person's own, in a room nobody's.
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
    run_id text NOT NULL,
    visibility text NOT NULL CHECK (visibility IN ('public', 'private', 'shared')),
    edited_at timestamptz,
    indexed boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations ON DELETE CASCADE,
    CHECK (user_id IS NOT NULL OR agent_id IS NOT NULL)
);
CREATE UNIQUE INDEX messages_by_conversation ON messages (tenant_id, conversation_id, at, seq);
CREATE INDEX messages_by_external_id ON messages (tenant_id, external_id);
CREATE INDEX messages_by_user ON messages (tenant_id, user_id);
CREATE INDEX messages_to_index ON messages (tenant_id, conversation_id, seq) WHERE NOT indexed;

-- Ids of messages that were erased, so that a repeated event or import cannot bring them back.
CREATE TABLE erased_messages (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    erased_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

CREATE TABLE turns (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    message_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    door text NOT NULL,
    state text NOT NULL CHECK (state IN ('queued', 'answered', 'sent')),
    claimed_by bigint NOT NULL,
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
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations ON DELETE CASCADE
);
CREATE INDEX turns_open ON turns (tenant_id, queued_at) WHERE state <> 'sent';
CREATE INDEX turns_by_conversation ON turns (tenant_id, conversation_id, queued_at);
CREATE INDEX turns_by_message ON turns (tenant_id, message_id);

CREATE TABLE summaries (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    conversation_id uuid,
    tier text NOT NULL CHECK (tier IN ('thread', 'session', 'day', 'week')),
    run_id text NOT NULL,
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
CREATE INDEX summaries_by_run ON summaries (tenant_id, run_id, tier, ends_at DESC);

-- A message as it is indexed for recall.
CREATE TABLE episodes (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    message_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, message_id) REFERENCES messages ON DELETE CASCADE
);
CREATE INDEX episodes_by_message ON episodes (tenant_id, message_id);

CREATE TABLE memories (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    run_id text NOT NULL,
    user_id uuid,
    agent_id uuid,
    visibility text NOT NULL CHECK (visibility IN ('public', 'private', 'shared')),
    team_id uuid,
    allowed_vendors text[] NOT NULL DEFAULT '{*}',
    kind text NOT NULL,
    key text,
    text text NOT NULL,
    author text NOT NULL,
    origin text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    superseded_by uuid,
    deleted_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX memories_by_run ON memories (tenant_id, run_id, created_at DESC);
CREATE INDEX memories_by_user ON memories (tenant_id, user_id);
CREATE UNIQUE INDEX memories_by_key ON memories (tenant_id, run_id, user_id, key)
    WHERE key IS NOT NULL AND superseded_by IS NULL AND deleted_at IS NULL;

-- Typed values. A row is what held from `valid_from` until `valid_to` (NULL: it holds now).
CREATE TABLE facts (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    run_id text NOT NULL,
    user_id uuid,
    agent_id uuid,
    visibility text NOT NULL CHECK (visibility IN ('public', 'private', 'shared')),
    key text NOT NULL,
    value jsonb NOT NULL,
    author text NOT NULL,
    origin text NOT NULL,
    valid_from timestamptz NOT NULL,
    valid_to timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CREATE UNIQUE INDEX facts_current ON facts (tenant_id, run_id, visibility, key) WHERE valid_to IS NULL;
CREATE INDEX facts_by_key ON facts (tenant_id, run_id, key, valid_from);

CREATE TABLE landmarks (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    run_id text NOT NULL,
    user_id uuid,
    agent_id uuid,
    visibility text NOT NULL CHECK (visibility IN ('public', 'private', 'shared')),
    text text NOT NULL,
    author text NOT NULL,
    decided_at timestamptz NOT NULL,
    replaces uuid,
    retired_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX landmarks_by_run ON landmarks (tenant_id, run_id, decided_at);

-- What an item was made from. Items: memory, fact, landmark, summary, turn. Sources: message, summary, memory, fact, landmark.
CREATE TABLE lineage (
    tenant_id uuid NOT NULL REFERENCES tenants,
    item_kind text NOT NULL,
    item_id uuid NOT NULL,
    source_kind text NOT NULL,
    source_id uuid NOT NULL,
    PRIMARY KEY (tenant_id, item_id, source_id)
);
CREATE INDEX lineage_by_source ON lineage (tenant_id, source_id);

-- Everything that recall can find, with the marks that decide who may: the one table that recall scans.
-- The covering index holds a row's one-bit-per-dimension signature, so that a scope is scanned without its heap.
CREATE TABLE recall_index (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('episode', 'memory', 'summary')),
    run_id text NOT NULL,
    user_id uuid,
    visibility text NOT NULL,
    vendors text[],
    at timestamptz NOT NULL,
    expires_at timestamptz,
    length int NOT NULL,
    embedding vector,
    signature bit varying,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX recall_index_scan ON recall_index (tenant_id, run_id)
    INCLUDE (id, visibility, user_id, vendors, at, expires_at, length, signature);
CREATE INDEX recall_index_to_embed ON recall_index (tenant_id, at, id) WHERE embedding IS NULL;
ALTER TABLE recall_index ALTER COLUMN embedding SET STORAGE EXTERNAL;

-- Postings for word search: which item holds which stem how often. `length` is the item's, in terms.
CREATE TABLE recall_terms (
    tenant_id uuid NOT NULL,
    run_id text NOT NULL,
    term text NOT NULL,
    item_id uuid NOT NULL,
    tf smallint NOT NULL,
    length int NOT NULL,
    visibility text NOT NULL,
    user_id uuid,
    vendors text[],
    at timestamptz NOT NULL,
    expires_at timestamptz,
    FOREIGN KEY (tenant_id, item_id) REFERENCES recall_index ON DELETE CASCADE
);
CREATE INDEX recall_terms_scan ON recall_terms (tenant_id, run_id, term)
    INCLUDE (item_id, tf, length, visibility, user_id, vendors, at, expires_at);
CREATE INDEX recall_terms_by_item ON recall_terms (tenant_id, item_id);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'workspaces', 'settings', 'users', 'identities', 'agents', 'teams', 'team_members', 'projects',
        'project_members', 'conversations', 'members', 'messages', 'erased_messages', 'turns', 'summaries',
        'episodes', 'memories', 'facts', 'landmarks', 'lineage', 'recall_index', 'recall_terms']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = current_tenant())', name);
    END LOOP;
END
$$;

-- Recall reads its indexes without their tables, but only where a vacuum has been since the last change, and an import
-- changes much at once: so vacuum and analyse after a twentieth, not after a fifth.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['messages', 'episodes', 'memories', 'lineage', 'recall_index', 'recall_terms']
    LOOP
        EXECUTE format('ALTER TABLE %I SET (autovacuum_vacuum_scale_factor = 0.05,'
                       ' autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05)', name);
    END LOOP;
END
$$;

GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO nexus_service;
GRANT USAGE ON SCHEMA public TO nexus_service;
