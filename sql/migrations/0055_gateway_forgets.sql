-- When people last forgot something: what their tools had asked models for by then, and was not answered yet, teaches nothing.
CREATE TABLE gateway_forgets (
    tenant_id uuid NOT NULL,
    user_id uuid NOT NULL,
    forgot_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, user_id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);

ALTER TABLE gateway_forgets ENABLE ROW LEVEL SECURITY;
ALTER TABLE gateway_forgets FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON gateway_forgets USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON gateway_forgets TO nexus_service;
