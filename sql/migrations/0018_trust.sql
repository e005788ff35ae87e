-- Who wrote something, by how much they are trusted when they wrote it.
ALTER TABLE messages ADD COLUMN trust text NOT NULL DEFAULT 'member' CHECK (trust IN ('member', 'guest', 'tool'));
ALTER TABLE memories ADD COLUMN trust text NOT NULL DEFAULT 'member' CHECK (trust IN ('member', 'guest', 'tool'));
ALTER TABLE facts ADD COLUMN trust text NOT NULL DEFAULT 'member' CHECK (trust IN ('member', 'guest', 'tool'));
ALTER TABLE landmarks ADD COLUMN trust text NOT NULL DEFAULT 'member' CHECK (trust IN ('member', 'guest', 'tool'));

-- What the untrusted wrote or caused to be extracted, until somebody approves or rejects it. It has a table of its own,
-- so that no statement about memories, facts and landmarks can read it. A row that was decided stays, without its text, so
-- that indexing its message again does not ask again.
CREATE TABLE quarantine (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('memory', 'fact', 'landmark')),
    item_id uuid NOT NULL,         -- the id of the memory, fact or landmark that it becomes
    namespace text NOT NULL,
    user_id uuid NOT NULL,
    visibility text NOT NULL CHECK (visibility IN ('public', 'private', 'shared')),
    trust text NOT NULL CHECK (trust IN ('member', 'guest', 'tool')),
    detail text NOT NULL,          -- the kind of a memory, the key of a fact
    text text NOT NULL,            -- of a fact: its value as JSON
    author text NOT NULL,
    origin text NOT NULL,
    at timestamptz NOT NULL,
    state text NOT NULL CHECK (state IN ('pending', 'approved', 'rejected')),
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX quarantine_pending ON quarantine (tenant_id, namespace, at) WHERE state = 'pending';
CREATE INDEX quarantine_by_user ON quarantine (tenant_id, user_id);
ALTER TABLE quarantine ENABLE ROW LEVEL SECURITY;
ALTER TABLE quarantine FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON quarantine USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON quarantine TO nexus_service;
