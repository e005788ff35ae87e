-- Files for one person that were put into their DM on a platform (Slack has no files that only one person in a channel
-- sees), so that what they forget is deleted there too. due: to be deleted, since the person forgot something.
CREATE TABLE posted_files (
    tenant_id uuid NOT NULL,
    platform text NOT NULL,
    workspace text NOT NULL,
    external_id text NOT NULL,
    user_id uuid NOT NULL,
    due boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant_id, platform, workspace, external_id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX posted_files_by_user ON posted_files (tenant_id, user_id);

ALTER TABLE posted_files ENABLE ROW LEVEL SECURITY;
ALTER TABLE posted_files FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON posted_files USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON posted_files TO nexus_service;
