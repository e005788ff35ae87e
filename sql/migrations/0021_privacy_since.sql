-- When a room's privacy was last stated, and when its present namespace was opened. Platforms deliver late and repeat: what
-- was stated earlier changes nothing any more.
ALTER TABLE conversations ADD COLUMN privacy_at timestamptz;
ALTER TABLE conversations ADD COLUMN opened_at timestamptz;
DO $$
DECLARE
    each uuid;
BEGIN
    FOR each IN SELECT tenant_id FROM tenants
    LOOP
        PERFORM set_config('nexus.tenant', each::text, true);
        UPDATE conversations SET privacy_at = CASE WHEN private THEN now() ELSE coalesce(seen_at, created_at) END
        WHERE tenant_id = each AND kind = 'room';
    END LOOP;
    PERFORM set_config('nexus.tenant', '', true);
END
$$;
