-- Reminders that people asked for (/nexus remind). When one is due, its text is stored as an agent's message of its
-- conversation, with a turn that is answered already and delivered as an answer is. The row stays after that, so that
-- forgetting reaches what was posted (lineage: turn from reminder).
-- conversation_id: where it is posted, a DM of the person's for what is for them alone. namespace: that of the conversation
-- when it was asked for; a room that has another one by then is not posted in. repeats: see composer/text/when.py; NULL: once.
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
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'ended')),
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users (tenant_id, id) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX reminders_due ON reminders (tenant_id, due_at) WHERE state = 'open';
CREATE INDEX reminders_by_user ON reminders (tenant_id, user_id, id);

ALTER TABLE reminders ENABLE ROW LEVEL SECURITY;
ALTER TABLE reminders FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON reminders USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON reminders TO nexus_service;
