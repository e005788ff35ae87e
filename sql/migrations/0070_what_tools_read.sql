-- What was handed out to people's tools: which entry, fact or decision (item_id) to which tool (vendor) of whom over the API, MCP
-- or the gateway, and when it was so last. No text, and no question.
CREATE TABLE tool_reads (
    tenant_id uuid NOT NULL,
    item_id uuid NOT NULL,
    user_id uuid NOT NULL,
    vendor text NOT NULL,
    route text NOT NULL CHECK (route IN ('api', 'mcp', 'gateway')),
    at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, item_id, user_id, vendor, route),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX tool_reads_by_tool ON tool_reads (tenant_id, user_id, vendor, at);
ALTER TABLE tool_reads ENABLE ROW LEVEL SECURITY;
ALTER TABLE tool_reads FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tool_reads USING (tenant_id = current_tenant());
ALTER TABLE tool_reads ALTER COLUMN vendor SET STATISTICS 0;
ALTER TABLE tool_reads ALTER COLUMN route SET STATISTICS 0;
GRANT SELECT, INSERT, UPDATE, DELETE ON tool_reads TO nexus_service;
