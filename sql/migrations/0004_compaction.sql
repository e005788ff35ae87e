-- Compaction of the view, landmarks that are proposed first, and how much of a prompt was the beginning of the one before it.

-- The oldest part of a conversation's view as one agent sees it, as a summary. The messages stay in the log. It covers all
-- messages up to (through_at, through_seq); (made_at, made_seq) was the newest one in view. `before_tokens` and
-- `after_tokens` are the prompt's, as compaction judges it. Its lineage names every message that was in view then.
CREATE TABLE compactions (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    run_id text NOT NULL,
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
    asked boolean NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations ON DELETE CASCADE
);
CREATE INDEX compactions_latest ON compactions (tenant_id, conversation_id, agent_id, run_id, made_at DESC, made_seq DESC);

ALTER TABLE compactions ENABLE ROW LEVEL SECURITY;
ALTER TABLE compactions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON compactions USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON compactions TO nexus_service;

-- What was found in talk is proposed until a person accepts it; both are pinned. A retired one is kept and pinned no more.
-- `replaces` is the version before it, which is retired. `settled_by` accepted, amended or retired it.
ALTER TABLE landmarks
    ADD COLUMN state text NOT NULL DEFAULT 'pinned' CHECK (state IN ('proposed', 'pinned', 'retired')),
    ADD COLUMN settled_by text;
UPDATE landmarks SET state = 'retired' WHERE retired_at IS NOT NULL;

-- Tokens that the prompt had in common with the beginning of the same agent's prompt before it in this conversation.
ALTER TABLE turns ADD COLUMN reused_tokens int;
CREATE INDEX turns_by_agent ON turns (tenant_id, conversation_id, agent_id, queued_at DESC) WHERE prompt IS NOT NULL;
