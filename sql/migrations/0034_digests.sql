-- Digests (/nexus digest): the summary of a room's last day or week, posted to that room at an hour of the tenant's time
-- zone. The text is that of the stored summary; nothing of it is kept here.
CREATE TABLE digests (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    period text NOT NULL CHECK (period IN ('daily', 'weekly')),
    hour integer NOT NULL CHECK (hour BETWEEN 0 AND 23),
    due_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, conversation_id),
    FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX digests_due ON digests (tenant_id, due_at);

ALTER TABLE digests ENABLE ROW LEVEL SECURITY;
ALTER TABLE digests FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON digests USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON digests TO nexus_service;
