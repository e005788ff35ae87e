-- Projects and teams are renamed and deleted; sessions are listed by person; identities say what their platform says.
GRANT UPDATE (slug), DELETE ON projects TO nexus_service;
GRANT UPDATE (name), DELETE ON teams TO nexus_service;

-- A person's sessions are listed by who they are.
CREATE INDEX conversations_sessions_by_user ON conversations (tenant_id, user_id) WHERE kind = 'session';

-- trust: what the platform said of this person when it last did; NULL where it has not yet.
ALTER TABLE identities ADD COLUMN trust text CHECK (trust IN ('member', 'guest'));
GRANT UPDATE (trust) ON identities TO nexus_service;
