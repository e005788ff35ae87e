-- When what a command may replace (a fact, a setting, a role …) was last changed: by the time at which that was asked for, since
-- a command that was interrupted runs later than it was given. subject: an id that is derived from what was changed.
CREATE TABLE changes (
    tenant_id uuid NOT NULL REFERENCES tenants,
    subject uuid NOT NULL,
    asked_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, subject)
);

ALTER TABLE changes ENABLE ROW LEVEL SECURITY;
ALTER TABLE changes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON changes USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON changes TO nexus_service;
