-- What calls that are running may use at most, while a budget counts them: so that all processes together stay within it.
-- A row is deleted when its call has ended; it expires in case its process died before that.
CREATE TABLE usage_reservations (
    tenant_id uuid NOT NULL,            -- no reference, as in model_usage
    id uuid NOT NULL,
    kind text NOT NULL,
    agent text NOT NULL,                -- its slug; '' for none
    tokens bigint NOT NULL,
    cost numeric NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

ALTER TABLE usage_reservations ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_reservations FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_reservations USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON usage_reservations TO nexus_service;
