-- What the chat platforms add: who is whom on another one, what each room and person consented to, and what was delivered.

-- One person may be several users, one on each platform: those that share a `person_id` (their own id when it is NULL).
ALTER TABLE users ADD COLUMN person_id uuid;
-- Nothing of theirs is kept beyond the turn that they ask for.
ALTER TABLE users ADD COLUMN opted_out boolean NOT NULL DEFAULT false;
CREATE INDEX users_by_person ON users (tenant_id, person_id) WHERE person_id IS NOT NULL;

-- A code that is shown to a user in one place and entered in another; only its hash is kept.
CREATE TABLE link_codes (
    tenant_id uuid NOT NULL,
    code_hash text NOT NULL,
    user_id uuid NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, code_hash),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);

-- `title` is what people call it where `name` is the platform's id. `memory`: what is kept of what is said there.
-- `seen_id` and `seen_at`: the last message that was received, kept or not; after an outage reading goes on from there.
ALTER TABLE conversations
    ADD COLUMN title text,
    ADD COLUMN memory text NOT NULL DEFAULT 'on' CHECK (memory IN ('on', 'mentions', 'off')),
    ADD COLUMN noticed_at timestamptz,
    ADD COLUMN seen_id text,
    ADD COLUMN seen_at timestamptz;
CREATE INDEX conversations_by_platform ON conversations (tenant_id, platform, workspace) WHERE seen_id IS NOT NULL;

-- A message that is kept for its answer alone and erased once that was sent.
ALTER TABLE messages ADD COLUMN passing boolean NOT NULL DEFAULT false;
CREATE INDEX messages_passing ON messages (tenant_id, id) WHERE passing;

-- Which part of an answer stands where on the platform: a part that is here is not sent again.
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

ALTER TABLE link_codes ENABLE ROW LEVEL SECURITY;
ALTER TABLE link_codes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON link_codes USING (tenant_id = current_tenant());
ALTER TABLE deliveries ENABLE ROW LEVEL SECURITY;
ALTER TABLE deliveries FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON deliveries USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON link_codes, deliveries TO nexus_service;
