-- What is asked again and again is found without reading everything that is stored.

-- The rows of the audit log that wait for their seal. Verification does not rely on it: it compares rows and seals.
CREATE TABLE audit_unsealed (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
ALTER TABLE audit_events NO FORCE ROW LEVEL SECURITY;
ALTER TABLE audit_seals NO FORCE ROW LEVEL SECURITY;
INSERT INTO audit_unsealed (tenant_id, id)
SELECT e.tenant_id, e.id FROM audit_events AS e
WHERE NOT EXISTS (SELECT FROM audit_seals AS s WHERE s.tenant_id = e.tenant_id AND s.event_id = e.id);
ALTER TABLE audit_events FORCE ROW LEVEL SECURITY;
ALTER TABLE audit_seals FORCE ROW LEVEL SECURITY;
ALTER TABLE audit_unsealed ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_unsealed FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON audit_unsealed USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, DELETE ON audit_unsealed TO nexus_service;

-- What one person owns: /nexus privacy, export, forget and memory by. `forget` reads all of it, page by page, by id.
DROP INDEX messages_by_user;
DROP INDEX memories_by_user;
DROP INDEX quarantine_by_user;
CREATE INDEX messages_by_user ON messages (tenant_id, user_id, id);
CREATE INDEX memories_by_user ON memories (tenant_id, user_id, id);
CREATE INDEX quarantine_by_user ON quarantine (tenant_id, user_id, id);
CREATE INDEX facts_by_user ON facts (tenant_id, user_id, id);
CREATE INDEX landmarks_by_user ON landmarks (tenant_id, user_id, id);
