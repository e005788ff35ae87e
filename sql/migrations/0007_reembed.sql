-- Vectors of an embedder that is to take the place of the present one, beside the ones in use (`nexus reembed`). What is
-- forgotten meanwhile goes from here too; what has changed is made findable anew, and so embedded anew.
CREATE TABLE reembedded (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, id) REFERENCES recall_index ON DELETE CASCADE
);
ALTER TABLE reembedded ALTER COLUMN embedding SET STORAGE EXTERNAL;
ALTER TABLE reembedded ENABLE ROW LEVEL SECURITY;
ALTER TABLE reembedded FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON reembedded USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON reembedded TO nexus_service;
