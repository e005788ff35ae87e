-- What the gateway learns from: a user's message and the answer, until statements were extracted from them; then both are empty,
-- and the row stays for a while so that the same turn is learnt once. id: derived from the turn. vendor: the tool that the
-- statements are written by (gateway: the person's own key).
CREATE TABLE gateway_exchanges (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    vendor text NOT NULL,
    question text NOT NULL,
    answer text NOT NULL,
    said_at timestamptz NOT NULL,
    learnt_at timestamptz,
    claim uuid,
    claimed_until timestamptz,
    due_at timestamptz,
    attempts int NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX gateway_exchanges_waiting ON gateway_exchanges (tenant_id, user_id, vendor, said_at) WHERE learnt_at IS NULL;
CREATE INDEX gateway_exchanges_by_age ON gateway_exchanges (tenant_id, said_at);

ALTER TABLE gateway_exchanges ENABLE ROW LEVEL SECURITY;
ALTER TABLE gateway_exchanges FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON gateway_exchanges USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON gateway_exchanges TO nexus_service;
