-- What the gateway has put into a request of a person's tool (`vendor`; *: their own key), so that the requests of its tool
-- loop get the same. digest: SHA-256 of what was said up to the user's last message. standing and recalled: ids of what was
-- shown, and no text of it.
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

ALTER TABLE gateway_turns ENABLE ROW LEVEL SECURITY;
ALTER TABLE gateway_turns FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON gateway_turns USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON gateway_turns TO nexus_service;
