-- The customer that a tenant is at the billing provider, and the state of its subscription when the provider was asked last:
-- status is the provider's word, or none; plan, the one that it gives (NULL: none); until, the end of the time that is paid for;
-- ends, that it is not renewed then. version counts how often it was asked. Nothing of a person.
CREATE TABLE billing_customers (
    tenant_id uuid PRIMARY KEY REFERENCES tenants,
    customer text NOT NULL,
    status text NOT NULL DEFAULT 'none',
    plan text,
    until timestamptz,
    ends boolean NOT NULL DEFAULT false,
    version bigint NOT NULL DEFAULT 0
);
ALTER TABLE billing_customers ENABLE ROW LEVEL SECURITY;
ALTER TABLE billing_customers FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON billing_customers USING (tenant_id = current_tenant());
ALTER TABLE billing_customers ALTER COLUMN customer SET STATISTICS 0;
ALTER TABLE billing_customers ALTER COLUMN status SET STATISTICS 0;
ALTER TABLE billing_customers ALTER COLUMN plan SET STATISTICS 0;
GRANT SELECT, INSERT, UPDATE ON billing_customers TO nexus_service;
