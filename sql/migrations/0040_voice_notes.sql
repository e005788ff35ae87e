-- Messages whose voice notes are being transcribed, each by the process `claimed_by`. A row goes when that has ended,
-- however it ended; one whose process is dead was interrupted, and is taken over. tries: how many processes began it.
CREATE TABLE voice_notes (
    tenant_id uuid NOT NULL,
    message_id uuid NOT NULL,
    adapter text NOT NULL,
    claimed_by bigint NOT NULL,
    tries smallint NOT NULL DEFAULT 1,
    PRIMARY KEY (tenant_id, message_id),
    FOREIGN KEY (tenant_id, message_id) REFERENCES messages ON DELETE CASCADE
);

ALTER TABLE voice_notes ENABLE ROW LEVEL SECURITY;
ALTER TABLE voice_notes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON voice_notes USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON voice_notes TO nexus_service;
