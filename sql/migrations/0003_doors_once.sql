-- What happens once over a chat platform although its events come any number of times, and what must still be taken back there.

-- Commands that were begun: the same event delivered again runs nothing. Holds no word of them.
CREATE TABLE commands_run (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    run_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id)
);

-- Which turn's answer the first-use notice of a room goes with: after a crash that turn is sent again, and no other posts it.
ALTER TABLE conversations ADD COLUMN noticed_by uuid;

-- Parts of answers that were withdrawn and still show their words on the platform. It holds where they stand, since the
-- question may be gone by then; a row goes when the platform shows the withdrawal.
CREATE TABLE withdrawals (
    tenant_id uuid NOT NULL,
    platform text NOT NULL,
    workspace text NOT NULL,
    external_id text NOT NULL,
    turn_id uuid NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    thread text,
    private boolean NOT NULL,
    message text NOT NULL,
    user_external_id text,
    PRIMARY KEY (tenant_id, platform, workspace, turn_id, external_id)
);

ALTER TABLE commands_run ENABLE ROW LEVEL SECURITY;
ALTER TABLE commands_run FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON commands_run USING (tenant_id = current_tenant());
ALTER TABLE withdrawals ENABLE ROW LEVEL SECURITY;
ALTER TABLE withdrawals FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON withdrawals USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON commands_run, withdrawals TO nexus_service;
