-- Receipts of erasures: how much went, and digests of the erased ids under a key of their own, to check later that nothing
-- of it is there. They hold nothing of what was erased.
CREATE TABLE receipts (
    tenant_id uuid NOT NULL REFERENCES tenants (tenant_id),
    id text NOT NULL,
    made_at timestamptz NOT NULL,
    key bytea NOT NULL,
    counts jsonb NOT NULL,
    digests bytea[] NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
ALTER TABLE receipts ENABLE ROW LEVEL SECURITY;
ALTER TABLE receipts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON receipts USING (tenant_id = current_tenant());
GRANT SELECT, INSERT ON receipts TO nexus_service;
GRANT DELETE ON deliveries TO nexus_service;  -- a posted part of an answer that was deleted on its platform
