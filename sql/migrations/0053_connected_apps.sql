-- Apps that people have connected by OAuth: a key without a text of its own, which tokens stand for. client: the id of
-- the app, a URL or that of its registration. redirect_uri: where it is led back to, as it is registered.
ALTER TABLE api_keys ALTER COLUMN digest DROP NOT NULL;
ALTER TABLE api_keys ADD COLUMN client text;
ALTER TABLE api_keys ADD COLUMN redirect_uri text;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_opened_by
    CHECK ((digest IS NULL) = (client IS NOT NULL) AND (client IS NULL) = (redirect_uri IS NULL));

-- Codes by which an app gets its first tokens, once, within a minute. challenge: S256 of the app's secret. redirect_given:
-- whether the app named where it is led back to.
CREATE TABLE app_codes (
    tenant_id uuid NOT NULL,
    digest bytea NOT NULL,
    key_id uuid NOT NULL,
    challenge text NOT NULL,
    redirect_uri text NOT NULL,
    redirect_given boolean NOT NULL,
    resource text NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, digest),
    FOREIGN KEY (tenant_id, key_id) REFERENCES api_keys (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX app_codes_by_key ON app_codes (tenant_id, key_id);

-- The tokens of one sign-in of an app: the access token and the refresh token that are valid now. family_digest is that
-- of the part which all its refresh tokens begin with, so one that was used before is known without being stored.
CREATE TABLE app_tokens (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    key_id uuid NOT NULL,
    resource text NOT NULL,
    permissions text[] NOT NULL,
    access_digest bytea NOT NULL,
    access_expires_at timestamptz NOT NULL,
    family_digest bytea NOT NULL,
    refresh_digest bytea NOT NULL,
    refresh_expires_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, access_digest),
    UNIQUE (tenant_id, family_digest),
    FOREIGN KEY (tenant_id, key_id) REFERENCES api_keys (tenant_id, id) ON DELETE CASCADE
);
CREATE INDEX app_tokens_by_key ON app_tokens (tenant_id, key_id);

ALTER TABLE app_codes ENABLE ROW LEVEL SECURITY;
ALTER TABLE app_codes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON app_codes USING (tenant_id = current_tenant());
ALTER TABLE app_tokens ENABLE ROW LEVEL SECURITY;
ALTER TABLE app_tokens FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON app_tokens USING (tenant_id = current_tenant());

-- Apps that have registered themselves. They belong to no tenant: who they are for is known only once somebody has
-- connected one. used_at: when somebody did, or when it last got tokens. One that nobody connects is deleted after a day.
CREATE TABLE oauth_clients (
    id uuid PRIMARY KEY,
    name text NOT NULL,
    redirect_uris text[] NOT NULL,
    auth_method text NOT NULL CHECK (auth_method IN ('none', 'client_secret_post', 'client_secret_basic')),
    secret_digest bytea,
    created_at timestamptz NOT NULL,
    used_at timestamptz,
    CHECK ((auth_method = 'none') = (secret_digest IS NULL))
);
CREATE INDEX oauth_clients_by_time ON oauth_clients (created_at) WHERE used_at IS NULL;

GRANT SELECT, INSERT, DELETE ON app_codes, app_tokens, oauth_clients TO nexus_service;
GRANT UPDATE ON app_tokens, oauth_clients TO nexus_service;
