-- The audit log (docs/operations.md): who did what to whom and where, by ids alone. Rows are only ever added. A job seals
-- them: each seal holds the digest of the seal before it. Events, seals and the anchor are signed with a key that is not
-- in the database, so that whoever administers it can't rewrite the log unseen.
CREATE TABLE audit_events (
    tenant_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    at timestamptz NOT NULL,
    act text NOT NULL,
    actor_id uuid,                 -- NULL: a platform, a job or an operator
    user_ids uuid[] NOT NULL,      -- whom it concerns. No references: a row outlives what it names
    conversation_id uuid,
    project_id uuid,
    details jsonb NOT NULL,
    key_id text NOT NULL,
    signature bytea NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
CREATE INDEX audit_events_by_time ON audit_events (tenant_id, at, id);

CREATE TABLE audit_seals (
    tenant_id uuid NOT NULL REFERENCES tenants,
    number bigint NOT NULL,        -- 1, 2, … without a gap
    event_id uuid NOT NULL,
    sealed_at timestamptz NOT NULL,
    event_digest bytea NOT NULL,
    before bytea NOT NULL,         -- the digest of the seal with the number before; of the first one, zeros
    key_id text NOT NULL,
    signature bytea NOT NULL,
    PRIMARY KEY (tenant_id, number),
    UNIQUE (tenant_id, event_id)
);

-- Where retention cut the log: the digest of the last row that went.
CREATE TABLE audit_anchors (
    tenant_id uuid PRIMARY KEY REFERENCES tenants,
    number bigint NOT NULL,
    digest bytea NOT NULL,
    cut_at timestamptz NOT NULL,
    key_id text NOT NULL,
    signature bytea NOT NULL
);

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['audit_events', 'audit_seals', 'audit_anchors']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = current_tenant())', name);
    END LOOP;
END
$$;
GRANT SELECT, INSERT ON audit_events, audit_seals TO nexus_service;
GRANT SELECT ON audit_anchors TO nexus_service;

CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'TRUNCATE' AND current_setting('nexus.audit_cut', true) = 'on' THEN
        RETURN coalesce(NEW, OLD); -- audit_cut
    END IF;
    RAISE EXCEPTION 'the audit log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME;
END
$$;
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['audit_events', 'audit_seals', 'audit_anchors']
    LOOP
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I'
                       ' FOR EACH ROW EXECUTE FUNCTION refuse_audit_change()', name);
        EXECUTE format('CREATE TRIGGER append_only_truncate BEFORE TRUNCATE ON %I'
                       ' FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change()', name);
    END LOOP;
END
$$;

-- Delete the sealed rows up to a number, and leave a signed anchor in their place. The only way in which the service, which
-- may not delete rows, shortens the log; without a signed anchor verification fails.
CREATE FUNCTION audit_cut(through bigint, last_digest bytea, cut timestamptz, signer text, anchor_signature bytea)
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    deleted bigint;
BEGIN
    PERFORM set_config('nexus.audit_cut', 'on', true);
    DELETE FROM audit_events AS e USING audit_seals AS s
    WHERE s.tenant_id = current_tenant() AND s.number <= through
          AND e.tenant_id = s.tenant_id AND e.id = s.event_id;
    DELETE FROM audit_seals WHERE tenant_id = current_tenant() AND number <= through;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    INSERT INTO audit_anchors AS a (tenant_id, number, digest, cut_at, key_id, signature)
    VALUES (current_tenant(), through, last_digest, cut, signer, anchor_signature)
    ON CONFLICT (tenant_id) DO UPDATE SET number = excluded.number, digest = excluded.digest, cut_at = excluded.cut_at,
        key_id = excluded.key_id, signature = excluded.signature;
    PERFORM set_config('nexus.audit_cut', '', true);
    RETURN deleted;
END
$$;
REVOKE ALL ON FUNCTION audit_cut(bigint, bytea, timestamptz, text, bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION audit_cut(bigint, bytea, timestamptz, text, bytea) TO nexus_service;

-- A stored prompt expires (the setting prompt_days). What was erased leaves no mark; what expired says so.
ALTER TABLE turns ADD COLUMN prompt_expired boolean NOT NULL DEFAULT false;
CREATE INDEX turns_with_prompt ON turns (tenant_id, answered_at) WHERE prompt IS NOT NULL;
