-- Writes over the API that named an idempotency key: what each of them made, so that a repeat makes nothing more. `digest`
-- is of the whole request, `key_digest` of the idempotency key, which may be anybody's words; of neither is the text
-- stored. Deleted after a day.
CREATE TABLE api_requests (
    tenant_id uuid NOT NULL,
    credential text NOT NULL,
    key_digest bytea NOT NULL,
    digest bytea NOT NULL,
    user_id uuid NOT NULL,
    made uuid,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, credential, key_digest),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE
);
CREATE INDEX api_requests_by_time ON api_requests (tenant_id, created_at);
ALTER TABLE api_requests ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_requests FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON api_requests USING (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON api_requests TO nexus_service;
