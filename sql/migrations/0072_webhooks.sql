-- Addresses of programs of people's own, which are told of what /v1/events tells that person. key_id: the key of the installation
-- that their secret is made with, which is not in the database. place: of one room, team or project alone. off_why: why nothing is
-- sent, where off_at is not NULL. told: what is stored in it was told; message_id, message_at: the message on its way, which tells
-- what is stored in message_until. failures, failing_since: how often it was not taken, and since when none was; next_at: not
-- before. last_at, last_result: what was sent last, and how it was answered.
CREATE TABLE webhooks (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    name text NOT NULL,
    url text NOT NULL,
    pages text[] NOT NULL,
    place uuid,
    key_id text NOT NULL,
    created_at timestamptz NOT NULL,
    off_at timestamptz,
    off_why text CHECK (off_why IN ('person', 'gone', 'failing', 'key')),
    told pg_snapshot NOT NULL DEFAULT pg_current_snapshot(),
    told_before xid8 NOT NULL GENERATED ALWAYS AS (pg_snapshot_xmin(told)) STORED,
    message_id uuid,
    message_at timestamptz,
    message_until pg_snapshot,
    failures int NOT NULL DEFAULT 0,
    failing_since timestamptz,
    next_at timestamptz,
    last_at timestamptz,
    last_result text,
    PRIMARY KEY (tenant_id, id),
    FOREIGN KEY (tenant_id, user_id) REFERENCES users ON DELETE CASCADE,
    CHECK ((off_at IS NULL) = (off_why IS NULL)),
    CHECK ((message_id IS NULL) = (message_at IS NULL) AND (message_id IS NULL) = (message_until IS NULL))
);
CREATE INDEX webhooks_by_user ON webhooks (tenant_id, user_id);
CREATE INDEX webhooks_by_place ON webhooks (tenant_id, place) WHERE off_at IS NULL;

-- What the webhooks of a tenant are to be told of, each if its person may see it: where a row was filed and whose it is, before or
-- after it was changed, and its table, as in a notice. Once for each transaction (xact), however much that changes and however many
-- webhooks there are; a tenant that has none has no rows.
CREATE TABLE webhook_changes (
    tenant_id uuid NOT NULL REFERENCES tenants,
    xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
    namespace text NOT NULL,
    visibility text NOT NULL,
    owner_id uuid,
    changed text NOT NULL
);
CREATE UNIQUE INDEX webhook_changes_once ON webhook_changes (tenant_id, xact, namespace, visibility, owner_id, changed) NULLS NOT DISTINCT;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['webhooks', 'webhook_changes'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = current_tenant())', name);
    END LOOP;
END
$$;
ALTER TABLE webhooks ALTER COLUMN name SET STATISTICS 0;
ALTER TABLE webhooks ALTER COLUMN url SET STATISTICS 0;
ALTER TABLE webhooks ALTER COLUMN pages SET STATISTICS 0;
ALTER TABLE webhooks ALTER COLUMN key_id SET STATISTICS 0;
ALTER TABLE webhooks ALTER COLUMN off_why SET STATISTICS 0;
ALTER TABLE webhooks ALTER COLUMN last_result SET STATISTICS 0;
ALTER TABLE webhook_changes ALTER COLUMN changed SET STATISTICS 0;
GRANT SELECT, INSERT, UPDATE, DELETE ON webhooks TO nexus_service;
GRANT SELECT, INSERT, DELETE ON webhook_changes TO nexus_service;

-- Say that a row was written, moved or erased: to every process once the transaction is stored, and to the webhooks of the tenant
-- in the transaction itself, so that none of it is lost. Messages are told to those that ask for their room alone.
CREATE FUNCTION tell_changed(tenant uuid, visibility text, owner uuid, namespace text, changed text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    room uuid := CASE WHEN changed = 'messages' THEN substring(namespace FROM '^room:([0-9a-f-]{36})')::uuid END;
BEGIN
    PERFORM pg_notify('turns', concat_ws(' ', 'changed', coalesce(tenant::text, '-'), visibility, coalesce(owner::text, '-'), namespace, changed));
    IF EXISTS (SELECT FROM webhooks AS w WHERE w.tenant_id = tenant AND w.off_at IS NULL AND (changed <> 'messages' OR w.place = room)) THEN
        INSERT INTO webhook_changes (tenant_id, namespace, visibility, owner_id, changed)
        VALUES (tenant, tell_changed.namespace, tell_changed.visibility, owner, tell_changed.changed) ON CONFLICT DO NOTHING;
    END IF;
END
$$;
CREATE OR REPLACE FUNCTION note_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM tell_changed(OLD.tenant_id, OLD.visibility, OLD.user_id, OLD.namespace, TG_TABLE_NAME);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM tell_changed(NEW.tenant_id, NEW.visibility, NEW.user_id, NEW.namespace, TG_TABLE_NAME);
    END IF;
    RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION note_shown() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    shown jsonb;
BEGIN
    FOREACH shown IN ARRAY ARRAY[to_jsonb(OLD), to_jsonb(NEW)] LOOP
        CONTINUE WHEN shown IS NULL;
        PERFORM tell_changed((shown ->> 'tenant_id')::uuid, 'shared', (shown ->> TG_ARGV[3])::uuid,
            TG_ARGV[0] || coalesce(shown ->> TG_ARGV[1], shown ->> TG_ARGV[2], '-'), TG_TABLE_NAME);
    END LOOP;
    RETURN NULL;
END
$$;
-- Not that something was sent: a webhook would be told of its own messages for ever.
CREATE TRIGGER webhooks_shown AFTER INSERT OR DELETE ON webhooks FOR EACH ROW EXECUTE FUNCTION note_shown('opens:', 'user_id', '', 'user_id');
CREATE TRIGGER webhooks_switched AFTER UPDATE ON webhooks FOR EACH ROW WHEN (OLD.off_at IS DISTINCT FROM NEW.off_at)
    EXECUTE FUNCTION note_shown('opens:', 'user_id', '', 'user_id');
